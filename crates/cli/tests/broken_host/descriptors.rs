use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::common::load::{Load, Site};

/// Callers that open connections and say nothing take all the connections that descriptors allow; the store keeps its own. Who is connected goes on, the log says what is
/// the matter and is not flooded, and when they are gone everyone is served again.
#[tokio::test(flavor = "multi_thread")]
async fn without_descriptors_it_goes_on_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (mut site, load) = (Site::new(folder.path()), Load::default());
    let limited = r#"ulimit -n 160 && exec "$@""#;
    site.wrapper = ["sh", "-c", limited, "sh"].map(str::to_owned).to_vec();
    let server = site.start();
    let client = site.client(&server);
    client.deploy().await;
    let clients = load.begin(&client, 4);
    load.more(20).await;
    let address = server
        .url
        .trim_start_matches("http://")
        .split('/')
        .next()
        .unwrap();
    let address: SocketAddr = address.parse().unwrap();
    // As many as the operating system takes on its behalf.
    let idle: Vec<_> = (0..128)
        .map_while(|_| TcpStream::connect_timeout(&address, Duration::from_millis(500)).ok())
        .collect();
    load.more(50).await;
    assert!(site.log().contains("limit of open files"), "{}", site.log());
    drop(idle);
    load.more(50).await;
    clients.stop().await;
    load.assert_nothing_refused();
    // A caller that comes anew is served.
    let sum = load.settle(&site.client(&server)).await;
    eprintln!("descriptors: {sum}");
    let log = site.log();
    assert!(
        log.lines().count() < 200,
        "the log is flooded: {} lines",
        log.lines().count()
    );
    assert_eq!(server.stop().code(), Some(0), "{}", site.log());
}
