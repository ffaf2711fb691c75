use std::io::Write as _;

use super::fault::{Disk, can_mount, skip};
use crate::common::load::Load;

/// Without space every start is refused with what to do, what is there can be read, and when there is space again work
/// goes on by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told_and_survived() {
    if !can_mount() {
        return skip(
            "a_full_disk_is_told_and_survived",
            "no file system can be mounted here",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::mount(&folder.path().join("disk"), 32);
    let (site, load) = (disk.site(folder.path()), Load::default());
    let server = site.start();
    let client = site.client(&server);
    client.deploy().await;
    let clients = load.begin(&client, 8);
    load.more(50).await;

    let ballast = disk.seen_from_outside("ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    let block = vec![0; 4096];
    while file.write_all(&block).is_ok() {}
    let words = load.refused("store-full").await;
    assert!(
        words.contains("tidegate.db") && words.contains("free space"),
        "{words}"
    );
    let (status, ready) = client.try_get("/../../health/ready").await.unwrap();
    assert_eq!(status, 503, "{ready}");
    assert!(ready.to_string().contains("no space left"), "{ready}");
    client.get("/process-instances?limit=1").await;

    std::fs::remove_file(&ballast).unwrap();
    drop(file);
    load.more(50).await;
    // Once more, and the process dies while there is no space.
    let mut file = std::fs::File::create(&ballast).unwrap();
    while file.write_all(&block).is_ok() {}
    load.until_refused_more("store-full").await;
    server.kill();
    clients.stop().await;
    std::fs::remove_file(&ballast).unwrap();
    drop(file);
    let server = site.start();
    let sum = load.settle(&site.client(&server)).await;
    eprintln!("full disk: twice without space, {sum}");
    assert!(!site.log().contains("panicked"), "{}", site.log());
}

/// A start on a disk without space says so, and is none.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_on_a_full_disk_says_what_to_do() {
    if !can_mount() {
        return skip(
            "a_start_on_a_full_disk_says_what_to_do",
            "no file system can be mounted here",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::mount(&folder.path().join("disk"), 1);
    let mut file = std::fs::File::create(disk.seen_from_outside("ballast")).unwrap();
    while file.write_all(&[0; 512]).is_ok() {}
    let site = disk.site(folder.path());
    let refused = site.try_start().err().expect("there is no space for a store");
    assert_eq!(refused.code(), Some(75), "{}", site.log());
    assert!(site.log().contains("free space"), "{}", site.log());
}
