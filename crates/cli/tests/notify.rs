//! What a service manager is told, on a real datagram socket by the real binary.

mod common;

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{Duration, Instant};

use common::Serve;
use rustix::process::Signal;

/// The manager's end of the socket.
struct Manager {
    socket: UnixDatagram,
    path: String,
}

impl Manager {
    fn new(home: &Path) -> Self {
        let path = home.join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self {
            socket,
            path: path.to_str().unwrap().to_owned(),
        }
    }

    fn next(&self) -> String {
        let mut bytes = [0; 4096];
        let length = self.socket.recv(&mut bytes).expect("a message within the time");
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    /// Every message up to the first that has the line.
    fn until(&self, line: &str) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            let message = self.next();
            let is_it = message.lines().any(|found| found == line);
            seen.push(message);
            if is_it {
                return seen;
            }
        }
    }

    /// What has come and was not read.
    fn rest(&self) -> Vec<String> {
        self.socket.set_nonblocking(true).unwrap();
        let mut seen = Vec::new();
        let mut bytes = [0; 4096];
        while let Ok(length) = self.socket.recv(&mut bytes) {
            seen.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
        }
        seen
    }
}

fn has(messages: &[String], line: &str) -> bool {
    messages
        .iter()
        .any(|message| message.lines().any(|found| found == line))
}

#[test]
fn readiness_reload_and_the_drain_are_told_in_their_order() {
    let home = tempfile::tempdir().unwrap();
    let manager = Manager::new(home.path());
    let data = home.path().join("data");
    let arguments = ["--data", data.to_str().unwrap(), "--drain-deadline", "1s"];
    let server = Serve::with(&arguments, &[("NOTIFY_SOCKET", &manager.path)]);
    let before = manager.until("READY=1");
    assert!(before[0].contains("STATUS=starting"), "{before:?}");
    assert!(!has(&before, "WATCHDOG=1"), "no watchdog was asked for");

    server.signal(Signal::HUP);
    let reloading = manager.until("RELOADING=1");
    let since = reloading
        .last()
        .unwrap()
        .lines()
        .find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
    assert!(since.unwrap().parse::<u64>().unwrap() > 0);
    manager.until("READY=1");

    let file = home.path().join("stubborn.bpmn");
    std::fs::write(&file, common::sleeper("stubborn", "demo.stubborn", "PT60S")).unwrap();
    server.ok(&["deploy", file.to_str().unwrap()]);
    server.ok(&["start", "stubborn"]);
    server.signal(Signal::TERM);
    let stopping = manager.until("STOPPING=1");
    let extended = |message: &String| {
        message
            .lines()
            .any(|line| line.starts_with("EXTEND_TIMEOUT_USEC="))
    };
    assert!(extended(stopping.last().unwrap()), "{stopping:?}");
    let draining = manager.until("STATUS=draining: 1 live cycles");
    assert!(extended(draining.last().unwrap()), "{draining:?}");
    manager.until("STATUS=stopped");
    assert_eq!(server.end().code(), 10);
}

#[test]
fn readiness_comes_after_recovery() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let arguments = ["--data", data.to_str().unwrap(), "--drain-deadline", "200ms"];
    let server = Serve::start(&arguments);
    let file = home.path().join("sleeper.bpmn");
    std::fs::write(&file, common::sleeper("sleeper", "demo.sleep", "PT60S")).unwrap();
    server.ok(&["deploy", file.to_str().unwrap()]);
    for _ in 0..20 {
        server.ok(&["start", "sleeper"]);
    }
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), 10);

    let manager = Manager::new(home.path());
    let server = Serve::with(&arguments, &[("NOTIFY_SOCKET", &manager.path)]);
    manager.until("READY=1");
    let status = server.json(&["status"]);
    assert_eq!(
        status["interruptedInstanceCount"], 0,
        "all were taken up before: {status}"
    );
    assert_eq!(status["activeExecutionCycleCount"], 20, "{status}");
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), 10);
}

#[test]
fn the_watchdog_is_fed_while_the_engine_moves_and_not_for_another_process() {
    let home = tempfile::tempdir().unwrap();
    let manager = Manager::new(home.path());
    let socket = ("NOTIFY_SOCKET", manager.path.as_str());
    let server = Serve::with(&["--store", "memory:"], &[socket, ("WATCHDOG_USEC", "600000")]);
    manager.until("READY=1");
    let began = Instant::now();
    for _ in 0..4 {
        manager.until("WATCHDOG=1");
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    server.signal(Signal::INT);
    assert_eq!(server.end().code(), 0);

    manager.socket.set_nonblocking(false).unwrap();
    let of_another = [socket, ("WATCHDOG_USEC", "50000"), ("WATCHDOG_PID", "1")];
    let server = Serve::with(&["--store", "memory:"], &of_another);
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), 0);
    let all = manager.rest();
    assert!(has(&all, "READY=1") || has(&all, "STOPPING=1"), "{all:?}");
    let second = all
        .iter()
        .rposition(|message| message.contains("STATUS=starting"))
        .unwrap();
    assert!(!has(&all[second..], "WATCHDOG=1"), "{all:?}");
}

#[test]
fn a_socket_that_is_not_there_harms_nobody() {
    let server = Serve::with(&["--store", "memory:"], &[("NOTIFY_SOCKET", "/nowhere/notify")]);
    server.ok(&["status"]);
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), 0);
}
