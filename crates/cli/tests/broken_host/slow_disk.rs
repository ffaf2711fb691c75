use std::time::{Duration, Instant};

use super::fault::{BrokenCalls, can_trace, skip};
use crate::common::load::{Load, Site};

/// A disk that takes a fifth of a second for each sync slows everything down and breaks nothing; a drain still ends by
/// its deadline.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_disk_slows_down_and_loses_nothing() {
    if !can_trace() {
        return skip(
            "a_slow_disk_slows_down_and_loses_nothing",
            "strace is absent or may not trace here",
        );
    }
    const DEADLINE: Duration = Duration::from_secs(5);
    let folder = tempfile::tempdir().unwrap();
    let (mut site, load) = (Site::new(folder.path()), Load::default());
    let deadline = format!("{}s", DEADLINE.as_secs());
    site.environment
        .push(("TIDEGATE_DRAIN_DEADLINE".to_owned(), deadline));
    let server = site.start();
    site.client(&server).deploy().await;
    let clients = load.begin(&site.client(&server), 8);
    load.more(20).await;
    let fault = BrokenCalls::begin(&server, "fdatasync,fsync", "delay_enter=200000");
    load.more(40).await;
    let began = Instant::now();
    let ended = server.stop();
    let took = began.elapsed();
    drop(fault);
    clients.stop().await;
    assert!(matches!(ended.code(), Some(0 | 10)), "{ended}: {}", site.log());
    // The deadline of the whole stop with its reserve: the contract with the platform.
    assert!(took < DEADLINE * 2, "the exit came after {took:?}");
    let server = site.start();
    let sum = load.settle(&site.client(&server)).await;
    eprintln!("slow disk: {sum}");
}
