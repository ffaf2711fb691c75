//! Nothing is answered before its sync: the system calls of the real binary say so.

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

const STARTS: usize = 40;

fn can_trace() -> bool {
    let mut traced = Command::new("strace");
    traced
        .args(["-o", "/dev/null", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    traced.status().is_ok_and(|status| status.success())
}

/// Starts instances one after the other under a trace of system calls: between two answers there is always a sync of
/// the write-ahead log that has succeeded.
#[tokio::test(flavor = "multi_thread")]
async fn every_answer_stands_behind_a_sync() {
    if !can_trace() {
        eprintln!("SKIPPED every_answer_stands_behind_a_sync: strace is absent or may not trace here");
        assert!(
            std::env::var("TIDEGATE_REQUIRE").as_deref() != Ok("1"),
            "strace is required here"
        );
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let trace = home.path().join("trace");
    let token = uuid::Uuid::new_v4().simple().to_string();
    let mut server = Command::new("strace")
        .args([
            "-f",
            "-y",
            "-s",
            "64",
            "-e",
            "trace=fsync,fdatasync,write,writev,sendto,sendmsg",
            "-o",
        ])
        .arg(&trace)
        .arg(env!("CARGO_BIN_EXE_tidegate"))
        .args(["serve", "--listen", "127.0.0.1:0", "--demo", "--data"])
        .arg(home.path().join("data"))
        .env("TIDEGATE_TOKEN", &token)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let url = loop {
        let line = lines.next().expect("the server says where it listens").unwrap();
        if let Some((_, url)) = line.split_once("listens on ") {
            break url.trim().to_owned();
        }
    };
    let reader = std::thread::spawn(move || lines.for_each(drop));
    let http = reqwest::Client::new();
    let file = std::fs::read(common::example("ten-tasks.bpmn")).unwrap();
    let post = |path: &str| http.post(format!("{url}{path}")).bearer_auth(&token);
    let deployed = post("/deployments?name=t.bpmn")
        .header("content-type", "application/xml")
        .body(file)
        .send()
        .await;
    let deployed: serde_json::Value = deployed.unwrap().json().await.unwrap();
    let process = deployed["definitions"][0]["processId"]
        .as_str()
        .unwrap()
        .to_owned();
    for _ in 0..STARTS {
        let answer = post("/process-instances")
            .json(&json!({ "processId": process }))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        answer.bytes().await.unwrap();
    }
    // strace's child: the server itself.
    let children = format!("/proc/{0}/task/{0}/children", server.id());
    let child = std::fs::read_to_string(children).unwrap();
    let pid: i32 = child.split_whitespace().next().unwrap().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    server.wait().unwrap();
    reader.join().unwrap();

    let text = std::fs::read_to_string(&trace).unwrap();
    let (answers, unsynced) = read(&text);
    assert!(answers >= STARTS, "only {answers} answers in the trace");
    assert_eq!(unsynced, 0, "answers without a sync before them");
    eprintln!("sync trace: {answers} answers, each behind a sync of its own");
}

/// How many answers the trace has, and how many of them no successful sync of the log precedes since the one before.
fn read(trace: &str) -> (usize, usize) {
    let (mut answers, mut unsynced, mut syncs) = (0, 0, 0);
    // Which threads are inside a sync of the log.
    let mut syncing = std::collections::BTreeSet::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.trim_start().split_once(' ') else {
            continue;
        };
        let call = call.trim_start();
        let is_sync = call.starts_with("fdatasync(") || call.starts_with("fsync(");
        if is_sync && call.contains("-wal>") {
            if call.contains("<unfinished") {
                syncing.insert(thread.to_owned());
            } else if call.ends_with("= 0") {
                syncs += 1;
            }
        } else if call.contains("sync resumed>") && syncing.remove(thread) {
            syncs += usize::from(call.ends_with("= 0"));
        } else if call.contains("HTTP/1.1 200") {
            answers += 1;
            unsynced += usize::from(syncs == 0);
            syncs = 0;
        }
    }
    (answers, unsynced)
}
