use std::path::Path;

use crate::common::load::{Load, Site};

const PAGE: usize = 8192;

/// Pages of the file turn to rubbish while nobody looks. The next start either says which file is damaged and what to
/// do, or serves what can be read and names the damage where it is met; it never makes something up, and with the
/// backup everything is there.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_pages_are_named_and_a_backup_has_everything() {
    let folder = tempfile::tempdir().unwrap();
    let (site, load) = (Site::new(folder.path()), Load::default());
    let server = site.start();
    site.client(&server).deploy().await;
    let clients = load.begin(&site.client(&server), 8);
    load.more(200).await;
    clients.stop().await;
    assert_eq!(server.stop().code(), Some(0), "{}", site.log());
    let file = site.data().join("tidegate.db");
    let whole = std::fs::read(&file).unwrap();
    let pages = whole.len() / PAGE;
    let (mut refused, mut served) = (0, 0);
    for n in 0..8 {
        // The first page once, then others from all over the file.
        let page = n * pages / 8;
        let mut damaged = whole.clone();
        damaged[page * PAGE..(page + 1) * PAGE].fill(0xA5);
        put(&file, &damaged);
        let place = tempfile::tempdir().unwrap();
        let trial = Site::new(place.path()).with_data(site.data().to_owned());
        match trial.try_start() {
            Err(status) => {
                refused += 1;
                let log = trial.log();
                assert!(status.code().is_some(), "{status}: {log}");
                assert!(
                    log.contains("tidegate.db") && log.contains("damaged"),
                    "{status}: {log}"
                );
                assert!(log.contains("backup"), "what to do: {log}");
            }
            Ok(server) => {
                served += 1;
                let client = trial.client(&server);
                let (status, list) = client.try_get("/process-instances?limit=1000").await.unwrap();
                match status {
                    200 => {
                        for item in list["items"].as_array().unwrap() {
                            let key = item["instanceKey"].as_str().unwrap();
                            let path = format!("/process-instances/{key}/history?limit=1000");
                            let (status, body) = client.try_get(&path).await.unwrap();
                            assert!(
                                status == 200 || body["detail"].as_str().unwrap().contains("damaged"),
                                "{body}"
                            );
                        }
                    }
                    _ => assert!(
                        list["detail"].as_str().unwrap().contains("damaged"),
                        "{status}: {list}"
                    ),
                }
                server.kill();
            }
        }
        assert!(!trial.log().contains("panicked"), "page {page}: {}", trial.log());
    }
    put(&file, &whole);
    let server = site.start();
    let sum = load.settle(&site.client(&server)).await;
    eprintln!("pages: of 8 files with a damaged page {refused} were refused and {served} served; {sum}");
}

/// A copy in the file's place, as an operator puts a backup back: after a clean stop the file alone is the whole store.
fn put(file: &Path, bytes: &[u8]) {
    for beside in ["-wal", "-shm"] {
        let mut name = file.as_os_str().to_owned();
        name.push(beside);
        let _ = std::fs::remove_file(name);
    }
    std::fs::write(file, bytes).unwrap();
}
