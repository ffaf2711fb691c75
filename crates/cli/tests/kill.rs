//! `kill -9` under load, again and again: what was answered is there, and what ended ended once.

mod common;

use common::load::{Load, Site};

/// How often the process is killed.
const ROUNDS: usize = 20;
const CLIENTS: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn twenty_kills_lose_nothing_that_was_answered_and_end_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (site, load) = (Site::new(folder.path()), Load::default());
    let mut server = site.start();
    site.client(&server).deploy().await;
    for round in 0..ROUNDS {
        let clients = load.begin(&site.client(&server), CLIENTS);
        // Any moment: it moves on with the rounds, always in the middle of the load.
        load.more(20 + round * 7).await;
        server.kill();
        clients.stop().await;
        server = site.start();
    }
    load.assert_nothing_refused();
    let sum = load.settle(&site.client(&server)).await;
    eprintln!("kill: {ROUNDS} kills, {sum}");
    server.kill();
}
