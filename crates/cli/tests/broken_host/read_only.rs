use super::fault::{BrokenCalls, Disk, can_mount, can_trace, skip};
use crate::common::load::Load;
use crate::common::load::Site;

/// What a kernel does with a disk that fails it: from one moment to the next nothing can be written.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_turns_read_only_is_told_and_survived() {
    if !can_trace() {
        return skip(
            "a_disk_that_turns_read_only_is_told_and_survived",
            "strace is absent or may not trace here",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let (site, load) = (Site::new(folder.path()), Load::default());
    let server = site.start();
    let client = site.client(&server);
    client.deploy().await;
    let clients = load.begin(&client, 8);
    load.more(50).await;
    let fault = BrokenCalls::begin(&server, "pwrite64,ftruncate,fdatasync", "error=EROFS");
    let words = load.refused("store-unavailable").await;
    assert!(
        words.contains("tidegate.db") && words.contains("check its disk"),
        "{words}"
    );
    let (status, ready) = client.try_get("/../../health/ready").await.unwrap();
    assert_eq!(status, 503, "{ready}");
    client.get("/process-instances?limit=1").await;
    drop(fault);
    load.more(50).await;

    let fault = BrokenCalls::begin(&server, "pwrite64,ftruncate,fdatasync", "error=EROFS");
    load.until_refused_more("store-unavailable").await;
    server.kill();
    drop(fault);
    clients.stop().await;
    let server = site.start();
    let sum = load.settle(&site.client(&server)).await;
    eprintln!("read-only: twice, {sum}");
    assert!(!site.log().contains("panicked"), "{}", site.log());
}

/// A start on such a disk says so; once it can be written, everything is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_on_a_read_only_disk_says_what_to_do() {
    if !can_mount() {
        return skip(
            "a_start_on_a_read_only_disk_says_what_to_do",
            "no file system can be mounted here",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::mount(&folder.path().join("disk"), 32);
    let (site, load) = (disk.site(folder.path()), Load::default());
    let server = site.start();
    site.client(&server).deploy().await;
    let clients = load.begin(&site.client(&server), 8);
    load.more(50).await;
    server.kill();
    clients.stop().await;
    disk.remount("ro");
    let refused = site.try_start().err().expect("the store cannot be written");
    assert_eq!(refused.code(), Some(75), "{}", site.log());
    assert!(site.log().contains("owner and mode"), "{}", site.log());
    disk.remount("rw");
    let server = site.start();
    let sum = load.settle(&site.client(&server)).await;
    eprintln!("read-only at the start: {sum}");
}
