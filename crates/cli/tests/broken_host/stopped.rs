use rustix::process::Signal;

use crate::common::load::{Load, Site};

/// A process that does not run (a debugger, a frozen container) keeps its store: a second one is told who has it. When
/// it goes on, so does its work.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_process_keeps_its_store_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (site, load) = (Site::new(folder.path()), Load::default());
    let server = site.start();
    site.client(&server).deploy().await;
    let clients = load.begin(&site.client(&server), 8);
    for _ in 0..3 {
        load.more(20).await;
        server.signal(Signal::STOP);
        let refused = site.try_start().err().expect("the store is held");
        assert_eq!(refused.code(), Some(75), "{}", site.log());
        server.signal(Signal::CONT);
    }
    let pid = server.pid().as_raw_nonzero().to_string();
    assert!(site.log().contains(&pid), "who holds the store: {}", site.log());
    load.more(20).await;
    clients.stop().await;
    load.assert_nothing_refused();
    let sum = load.settle(&site.client(&server)).await;
    eprintln!("stopped: 3 stops, {sum}");
    assert_eq!(server.stop().code(), Some(0), "{}", site.log());
}

/// What a host does to a process that it froze and then gives up.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_while_it_is_stopped_has_lost_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (site, load) = (Site::new(folder.path()), Load::default());
    let server = site.start();
    site.client(&server).deploy().await;
    let clients = load.begin(&site.client(&server), 8);
    load.more(30).await;
    server.signal(Signal::STOP);
    server.kill();
    clients.stop().await;
    let server = site.start();
    let sum = load.settle(&site.client(&server)).await;
    eprintln!("stopped and killed: {sum}");
}
