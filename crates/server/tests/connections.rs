//! No client puts off the end of the listener.

mod common;

use std::time::Duration;

use common::{TOKEN, server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// What would be waited for if it were waited for, and a time by which even a busy machine is through if it is not.
const DEADLINE: Duration = Duration::from_secs(120);
const LONG_BEFORE: Duration = Duration::from_secs(10);

async fn connect(server: &common::Server, send: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.listening.address()).await.unwrap();
    stream.write_all(send.as_bytes()).await.unwrap();
    stream
}

async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains(wanted) {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the stream ended before `{wanted}`: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    text
}

/// D19.
#[tokio::test]
async fn d19_idle_streaming_and_half_sent_requests_do_not_delay_the_end() {
    let server = server().await;
    let mut idle = connect(&server, "GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    read_until(&mut idle, "healthy").await;
    let events = format!(
        "GET /api/v1/admin/workflow-runtime/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
    );
    let mut streaming = connect(&server, &events).await;
    let first = read_until(&mut streaming, "interruptedInstanceCount").await;
    assert!(
        first.contains("event: status") && first.contains("text/event-stream"),
        "{first}"
    );
    let _silent = connect(&server, "").await;
    let _half_head = connect(&server, "GET /health/li").await;
    let half_body = format!(
        "POST /api/v1/messages HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
    );
    let _half_body = connect(&server, &half_body).await;

    let began = Instant::now();
    server.host.end_streams();
    let ended = read_until(&mut streaming, "closing").await;
    assert!(ended.contains("retry: "), "a hint to come back: {ended}");
    server.listening.close(Duration::from_millis(300)).await;
    assert!(began.elapsed() < LONG_BEFORE, "{:?}", began.elapsed());
    let mut rest = String::new();
    idle.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "", "the idle connection was closed");
}

#[tokio::test]
async fn with_only_idle_connections_the_end_comes_at_once() {
    let server = server().await;
    let mut idle = connect(&server, "GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    read_until(&mut idle, "healthy").await;
    let began = Instant::now();
    server.listening.close(DEADLINE).await;
    assert!(began.elapsed() < LONG_BEFORE, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_pause_is_seen_in_the_stream() {
    let server = server().await;
    let events = format!(
        "GET /api/v1/shells/default/admin/workflow-runtime/events HTTP/1.1\r\nhost: localhost\r\n\
         authorization: Bearer {TOKEN}\r\n\r\n"
    );
    let mut streaming = connect(&server, &events).await;
    read_until(&mut streaming, "\"reason\":\"None\"").await;
    server
        .post("/admin/workflow-runtime/pause", serde_json::json!({}))
        .await;
    read_until(&mut streaming, "\"reason\":\"AdministrativePause\"").await;
}

#[tokio::test]
async fn who_still_waits_at_the_end_is_answered() {
    let server = server().await;
    server.deploy("slow", &common::service("external")).await;
    let start = serde_json::json!({ "processId": "slow", "awaitCompletion": true });
    let waiting = tokio::spawn(common::answer(
        server
            .request(reqwest::Method::POST, "/process-instances")
            .json(&start),
    ));
    server.first("/process-instances?subStatus=suspended").await;
    server.host.begin_stop();
    server.host.end_streams();
    server.listening.close(DEADLINE).await;
    let (status, document) = waiting.await.unwrap();
    common::assert_problem(status, &document, 503, "server-stopping");
}
