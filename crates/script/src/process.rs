//! One worker process, as its owner sees it.

use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::options::Options;
use crate::protocol::{self, Greeting, LENGTH_BYTES, Outcome, REPLY_EXTRA_BYTES, Reply, SETUP_BYTES, Setup};
use crate::trouble::Trouble;

/// The worker stops a script by itself when its time is up; one that has not by then is killed.
const KILL_AFTER: Duration = Duration::from_millis(250);
/// The kernel ends a killed process at once, unless it hangs in a device; then it is left to be reaped later.
const REAP: Duration = Duration::from_secs(1);

/// The running program again, with one argument: a command for [`ScriptActivity::new`](crate::ScriptActivity::new).
///
/// On Linux it is the very same program also if its file was replaced by an upgrade.
pub fn reexec(argument: &str) -> Command {
    let program = if cfg!(target_os = "linux") {
        "/proc/self/exe".into()
    } else {
        std::env::current_exe().unwrap_or_default()
    };
    let mut command = Command::new(program);
    command.arg(argument);
    command
}

/// One script for any worker: a request's frame, and the number that its answer must bear.
pub(crate) struct Job {
    pub(crate) number: u64,
    pub(crate) frame: Vec<u8>,
}

pub(crate) struct Worker {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    scripts: u32,
}

impl Worker {
    /// Starts a process and waits until it is ready.
    pub(crate) async fn start(command: Command, options: &Options) -> Result<Self, Trouble> {
        let mut worker = Self::spawn(command).map_err(|error| Trouble::NotStarted(error.to_string()))?;
        let reason = match timeout(options.start, worker.greet(options)).await {
            Ok(Ok(Greeting::Ready)) => return Ok(worker),
            Ok(Ok(Greeting::Refused(reason))) => reason,
            Ok(Err(Trouble::Ended(status))) => format!("it ended with {status}"),
            Ok(Err(other)) => other.to_string(),
            Err(_) => format!("it was not ready after {:?}", options.start),
        };
        worker.kill().await;
        Err(Trouble::NotStarted(reason))
    }

    fn spawn(command: Command) -> io::Result<Self> {
        let mut command = tokio::process::Command::from(command);
        // No variable of the environment goes along: it may hold secrets. A group of its own keeps the terminal's
        // Ctrl-C from it: when a script ends is the owner's choice.
        command
            .env_clear()
            .env("TZ", "UTC")
            .current_dir("/")
            .process_group(0)
            .kill_on_drop(true);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("it has no pipes"));
        };
        Ok(Self {
            child,
            stdin,
            stdout,
            scripts: 0,
        })
    }

    async fn greet(&mut self, options: &Options) -> Result<Greeting, Trouble> {
        let setup = Setup {
            time_ms: u64::try_from(options.time.as_millis()).unwrap_or(u64::MAX),
            memory_bytes: options.memory_bytes,
            output_bytes: options.output_bytes,
            input_bytes: options.input_bytes,
        };
        let frame = protocol::frame(&setup).map_err(|error| Trouble::NotStarted(error.to_string()))?;
        self.ask(&frame, SETUP_BYTES).await
    }

    /// Runs one script. After an error the worker must be killed, and also after the future was dropped unfinished.
    pub(crate) async fn run(&mut self, job: &Job, options: &Options) -> Result<Outcome, Trouble> {
        self.scripts += 1;
        let most = options.output_bytes.saturating_add(REPLY_EXTRA_BYTES);
        let reply: Reply = timeout(
            options.time.saturating_add(KILL_AFTER),
            self.ask(&job.frame, most),
        )
        .await
        .map_err(|_| Trouble::TimedOut(options.time))??;
        if reply.number != job.number {
            return Err(Trouble::Unreadable("the answer is to another script".to_owned()));
        }
        match reply.outcome {
            Outcome::TimedOut => Err(Trouble::TimedOut(options.time)),
            outcome => Ok(outcome),
        }
    }

    async fn ask<T: DeserializeOwned>(&mut self, frame: &[u8], most: u32) -> Result<T, Trouble> {
        // What a worker said before it closed its input says more than the broken pipe does, and how it ended more
        // than an answer's end: so the answer is read even if the question could not be put.
        let _ = self.stdin.write_all(frame).await;
        let mut length = [0; LENGTH_BYTES];
        if self.stdout.read_exact(&mut length).await.is_err() {
            return Err(self.ended().await);
        }
        let length = u32::from_le_bytes(length);
        if length > most {
            return Err(Trouble::Unreadable(format!(
                "{length} bytes are said to come, {most} are allowed"
            )));
        }
        let mut answer = vec![0; length as usize];
        if self.stdout.read_exact(&mut answer).await.is_err() {
            return Err(self.ended().await);
        }
        serde_json::from_slice(&answer).map_err(|error| Trouble::Unreadable(error.to_string()))
    }

    async fn ended(&mut self) -> Trouble {
        match timeout(REAP, self.child.wait()).await {
            Ok(Ok(status)) => Trouble::Ended(status),
            _ => Trouble::Unreadable("it closed its pipe".to_owned()),
        }
    }

    /// How many scripts it has run.
    pub(crate) fn scripts(&self) -> u32 {
        self.scripts
    }

    /// True if the process still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends the process with SIGKILL and waits until it is gone.
    pub(crate) async fn kill(mut self) -> Option<ExitStatus> {
        timeout(REAP, async {
            self.child.kill().await.ok()?;
            self.child.wait().await.ok()
        })
        .await
        .ok()
        .flatten()
    }
}
