//! `kill -9` under load, again and again: what was answered is there, and what ended ended once.

mod common;

use common::load::{Load, Site};

/// How often the process is killed.
const ROUNDS: usize = 20;
const CLIENTS: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn twenty_kills_lose_nothing_that_was_answered_and_end_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    killed(ROUNDS, &Site::new(folder.path()), &[""]).await;
}

/// Both shells are under load when the process dies, and their commits shared transactions.
#[tokio::test(flavor = "multi_thread")]
async fn kills_of_two_shells_in_one_file_lose_nothing_of_either() {
    let folder = tempfile::tempdir().unwrap();
    let mut site = Site::new(folder.path());
    let config = folder.path().join("tidegate.toml");
    let shells = "[[shells]]\nid = \"billing\"\nnamespace = \"billing\"\n[[shells]]\nid = \"sales\"\nnamespace = \"sales\"\n";
    std::fs::write(&config, shells).unwrap();
    site.arguments = vec!["--config".to_owned(), config.display().to_string()];
    killed(ROUNDS / 3, &site, &["/shells/billing", "/shells/sales"]).await;
    assert!(!site.data().join("shells").exists(), "there is one file");
}

/// Kills the server under load again and again, then looks at each of the shells.
async fn killed(rounds: usize, site: &Site, shells: &[&str]) {
    let mut server = site.start();
    let loads: Vec<_> = shells.iter().map(|shell| (*shell, Load::default())).collect();
    for (shell, _) in &loads {
        site.client(&server).of(shell).deploy().await;
    }
    for round in 0..rounds {
        let clients: Vec<_> = loads
            .iter()
            .map(|(shell, load)| load.begin(&site.client(&server).of(shell), CLIENTS / loads.len()))
            .collect();
        // Any moment: it moves on with the rounds, always in the middle of the load.
        for (_, load) in &loads {
            load.more((20 + round * 7) / loads.len()).await;
        }
        server.kill();
        for clients in clients {
            clients.stop().await;
        }
        server = site.start();
    }
    for (shell, load) in &loads {
        load.assert_nothing_refused();
        let sum = load.settle(&site.client(&server).of(shell)).await;
        eprintln!("kill: `{shell}`: {rounds} kills, {sum}");
    }
    server.kill();
}
