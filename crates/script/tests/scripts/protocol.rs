//! The worker program by itself: its confinement, and its end when its owner is gone.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use crate::support::WORKER;

const SETUP: &str = r#"{"time_ms":600000,"memory_bytes":67108864,"output_bytes":1000,"input_bytes":1000}"#;

fn start() -> Child {
    let mut command = Command::new(WORKER);
    command
        .env("SECRET", "kept by the test alone")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command.spawn().unwrap()
}

fn send(worker: &mut Child, text: &str) {
    let length = u32::try_from(text.len()).unwrap().to_le_bytes();
    let frame = [&length, text.as_bytes()].concat();
    // A worker that ends at once does not listen to the end.
    let _ = worker.stdin.as_mut().unwrap().write_all(&frame);
}

fn receive(worker: &mut Child) -> String {
    let stdout = worker.stdout.as_mut().unwrap();
    let mut length = [0; 4];
    stdout.read_exact(&mut length).unwrap();
    let mut text = vec![0; u32::from_le_bytes(length) as usize];
    stdout.read_exact(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn a_worker_ends_when_its_owner_does_also_inside_a_native_call() {
    let mut worker = start();
    send(&mut worker, SETUP);
    assert_eq!(receive(&mut worker), r#""Ready""#);
    send(
        &mut worker,
        r#"{"number":1,"script":"new Array(1e9) + ''","variables":{}}"#,
    );
    drop(worker.stdin.take());
    assert!(worker.wait().unwrap().success());
}

#[test]
fn a_worker_that_is_spoken_to_wrongly_ends() {
    for wrong in ["", "{}", "[", &"x".repeat(100_000)] {
        let mut worker = start();
        send(&mut worker, wrong);
        assert!(!worker.wait().unwrap().success());
    }
    let mut unused = start();
    drop(unused.stdin.take());
    assert!(unused.wait().unwrap().success());
}

#[cfg(target_os = "linux")]
#[test]
fn a_ready_worker_has_given_up_files_processes_and_dumps() {
    let mut worker = start();
    send(&mut worker, SETUP);
    receive(&mut worker);
    let folder = format!("/proc/{}", worker.id());
    let limits = std::fs::read_to_string(format!("{folder}/limits")).unwrap();
    for (name, most) in [
        ("Max open files", "3"),
        ("Max processes", "0"),
        ("Max core file size", "0"),
        ("Max file size", "0"),
    ] {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        let columns: Vec<&str> = line[name.len()..].split_whitespace().collect();
        assert_eq!(columns[..2], [most, most], "{line}");
    }
    let space = limits
        .lines()
        .find(|line| line.starts_with("Max address space"))
        .unwrap();
    assert!(!space.contains("unlimited"), "{space}");
    let status = std::fs::read_to_string(format!("{folder}/status")).unwrap();
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    drop(worker.stdin.take());
    worker.wait().unwrap();
}
