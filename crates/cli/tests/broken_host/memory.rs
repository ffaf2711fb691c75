use rustix::process::{Resource, Rlimit, prlimit};
use serde_json::json;

use crate::common::load::{Load, Site};

/// What the server may take beyond what it has when it is at work. 64 requests of a megabyte do not fit into it.
const ROOM: u64 = 32 << 20;

/// Without memory the process ends, and the last thing it says is why; the next one has everything that was answered.
#[tokio::test(flavor = "multi_thread")]
async fn out_of_memory_loses_nothing_that_was_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (mut site, load) = (Site::new(folder.path()), Load::default());
    // The allocator takes what it needs from the system, and nothing for later.
    let arena = ("MIMALLOC_ARENA_RESERVE", "4096");
    site.environment.push((arena.0.to_owned(), arena.1.to_owned()));
    let mut server = site.start();
    let client = site.client(&server);
    client.deploy().await;
    let clients = load.begin(&client, 8);
    load.more(50).await;
    let limit = Some(address_space(&server.pid().as_raw_nonzero().to_string()) + ROOM);
    let limit = Rlimit {
        current: limit,
        maximum: limit,
    };
    prlimit(Some(server.pid()), Resource::As, limit).unwrap();

    let large = json!({ "processId": "waits", "variables": { "key": "none", "large": "x".repeat(900_000) } });
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let (client, large) = (client.clone(), large.clone());
        requests.spawn(async move { client.post("/process-instances", &large).await });
    }
    while requests.join_next().await.is_some() {}
    // A process that refuses what does not fit and lives is as good as one that ends and says why.
    let died = server.has_ended();
    if died {
        let log = site.log();
        assert!(log.contains("memory allocation of"), "{log}");
    }
    server.kill();
    clients.stop().await;
    let server = site.start();
    let sum = load.settle(&site.client(&server)).await;
    eprintln!("memory: it ended by itself: {died}; {sum}");
}

/// In bytes.
fn address_space(pid: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmSize")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}
