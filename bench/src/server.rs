//! The binary as a child process: `tidegate serve` on a free port, without authentication, with the trial handlers.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tidegate::api::Resource;

use crate::http::Client;
use crate::setting::{Said, option};

/// How long a server may take to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server. It does not outlive this value.
pub struct Server {
    child: Child,
    log: Option<JoinHandle<String>>,
    /// Where it listens.
    pub address: String,
}

impl Server {
    /// Starts the binary (option `binary`, by default `tidegate` beside this program) on the data in `folder`, and waits
    /// until it says where it listens.
    pub fn start(said: &Said, folder: &Path, settings: &[&str]) -> Self {
        let beside = std::env::current_exe()
            .map(|path| path.with_file_name("tidegate"))
            .unwrap_or_default();
        let binary: PathBuf = option(said, "binary", beside);
        let mut child = Command::new(&binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--demo", "--no-auth", "--data"])
            .arg(folder)
            .args(settings)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "{} cannot be started: {error}; build it with `cargo build --release -p tidegate-cli`, or name it with binary=PATH",
                    binary.display()
                )
            });
        let stdout = child.stdout.take().expect("its output is piped");
        let log = child
            .stderr
            .take()
            .map(|stderr| std::thread::spawn(move || read(stderr)));
        let mut lines = BufReader::new(stdout).lines();
        let address = loop {
            let line = lines.next().expect("the server starts").expect("it says lines");
            if let Some((_, url)) = line.split_once("listens on http://") {
                break url.trim_end_matches("/api/v1").to_owned();
            }
        };
        // What more it says is read, so that it can say it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, log, address }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// A connection to it.
    pub async fn client(&self) -> Client {
        Client::connect(&self.address).await.expect("the server listens")
    }

    /// Deploys a file.
    pub async fn deploy(&self, file: &Resource) {
        let answer = self.client().await.deploy(&file.bytes).await;
        let answer = answer.expect("the server answers");
        assert_eq!(answer.status, 200, "the process deploys: {}", answer.body);
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("it has an id"), signal).expect("it can be sent a signal");
    }

    /// Waits for its end: the exit code, none if a signal ended it, and its log.
    pub fn end(mut self) -> (Option<i32>, String) {
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                break status;
            }
            assert!(Instant::now() < until, "the server did not end");
            std::thread::sleep(Duration::from_millis(1));
        };
        let log = self.log.take().and_then(|log| log.join().ok());
        (status.code(), log.unwrap_or_default())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(mut stderr: ChildStderr) -> String {
    let mut bytes = Vec::new();
    // What was read until it broke is what there is.
    let _ = stderr.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The drain report: the last line of the log.
pub fn report(log: &str) -> Value {
    let last = log.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("no drain report ({error}): {log}"))
}
