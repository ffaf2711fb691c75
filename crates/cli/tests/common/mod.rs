//! The real binary, in a directory of its own.

#![allow(dead_code, reason = "each test file uses its own part")]

pub mod load;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A process that hangs fails its test after this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// The binary, without any setting of the tests' own environment.
pub fn tidegate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TIDEGATE_") {
            command.env_remove(name);
        }
    }
    command
}

/// A file of the examples.
pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name)
}

/// A process of one service task, whose handler takes a duration.
pub fn sleeper(process: &str, job_type: &str, duration: &str) -> String {
    format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="test">
  <process id="{process}" isExecutable="true"><startEvent id="start"/><sequenceFlow id="a" sourceRef="start" targetRef="sleep"/>
  <serviceTask id="sleep"><extensionElements><zeebe:taskDefinition type="{job_type}"/><zeebe:taskHeaders><zeebe:header key="duration" value="{duration}"/></zeebe:taskHeaders></extensionElements></serviceTask>
  <sequenceFlow id="b" sourceRef="sleep" targetRef="end"/><endEvent id="end"/></process></definitions>"#
    )
}

/// A server at work.
pub struct Serve {
    child: Process,
    stdout: BufReader<ChildStdout>,
    pub url: String,
    pub token: Option<String>,
    /// What it said of its token.
    pub token_line: String,
}

/// What a server left behind.
pub struct Ended {
    pub status: ExitStatus,
    pub stderr: String,
}

impl Serve {
    /// Starts a server on a free port and waits until it says where it listens.
    pub fn start(arguments: &[&str]) -> Self {
        Self::with(arguments, &[])
    }

    /// The same, with environment variables.
    pub fn with(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = tidegate();
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--demo"])
            .args(arguments)
            .envs(environment.iter().copied());
        let mut child = Process::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let mut stdout = BufReader::new(child.0.stdout.take().unwrap());
        let (mut url, mut token, mut token_line) = (String::new(), None, String::new());
        loop {
            let mut line = String::new();
            if stdout.read_line(&mut line).unwrap() == 0 {
                panic!("the server did not start: {}", child.end().stderr);
            }
            if let Some((_, rest)) = line.split_once("listens on ") {
                url = rest.trim().trim_end_matches("/api/v1").to_owned();
            }
            if let Some(rest) = line.strip_prefix("Token: ") {
                token_line = rest.trim().to_owned();
                token = Some(match token_line.strip_prefix("in ") {
                    Some(file) => std::fs::read_to_string(file).unwrap().trim().to_owned(),
                    None => token_line.clone(),
                });
            }
            if line.starts_with("Try:") {
                return Self {
                    child,
                    stdout,
                    url,
                    token,
                    token_line,
                };
            }
        }
    }

    /// A client command against it.
    pub fn client(&self, arguments: &[&str]) -> Output {
        let mut command = tidegate();
        command.args(arguments).args(["--server", &self.url]);
        if let Some(token) = &self.token {
            command.env("TIDEGATE_TOKEN", token);
        }
        command.output().unwrap()
    }

    /// The standard output of a client command that must succeed.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.client(arguments);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {out}{err}");
        out
    }

    /// Its JSON.
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let arguments: Vec<_> = arguments.iter().copied().chain(["-o", "json"]).collect();
        serde_json::from_str(&self.ok(&arguments)).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.0.id()).unwrap()).unwrap()
    }

    /// Reads standard error up to a line with `wanted`.
    pub fn wait_for_log(&mut self, wanted: &str) -> String {
        let mut seen = String::new();
        let stderr = self.child.0.stderr.as_mut().unwrap();
        let mut byte = [0];
        while !(seen.ends_with('\n') && seen.contains(wanted)) {
            assert!(
                stderr.read(&mut byte).unwrap() == 1,
                "`{wanted}` was not logged: {seen}"
            );
            seen.push(char::from(byte[0]));
        }
        seen
    }

    /// Waits for its end.
    pub fn end(self) -> Ended {
        drop(self.stdout);
        self.child.end()
    }
}

/// A process that does not outlive its test.
struct Process(Child);

impl Process {
    fn spawn(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    fn end(mut self) -> Ended {
        let mut stderr = self.0.stderr.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stderr.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "the server did not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        Ended {
            status,
            stderr: text(&reader.join().unwrap()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Ended {
    /// The drain report: the last line.
    pub fn report(&self) -> serde_json::Value {
        let last = self.stderr.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {}", self.stderr))
    }

    pub fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| panic!("{:?}: {}", self.status, self.stderr))
    }
}

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
