use serde_json::json;

use crate::common::load::{Load, Site};

/// Address space of the server, in KiB: it starts and works in it, and 64 requests of a megabyte do not fit.
const LIMIT: usize = 165_000;

/// Without memory the process ends, and the last thing it says is why; the next one has everything that was answered.
#[tokio::test(flavor = "multi_thread")]
async fn out_of_memory_loses_nothing_that_was_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (mut site, load) = (Site::new(folder.path()), Load::default());
    let limited = format!(r#"ulimit -v {LIMIT} && exec "$@""#);
    site.wrapper = ["sh", "-c", &limited, "sh"].map(str::to_owned).to_vec();
    let mut server = site.start();
    let client = site.client(&server);
    client.deploy().await;
    let clients = load.begin(&client, 8);
    load.more(50).await;
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
    site.wrapper.clear();
    let server = site.start();
    let sum = load.settle(&site.client(&server)).await;
    eprintln!("memory: it ended by itself: {died}; {sum}");
}
