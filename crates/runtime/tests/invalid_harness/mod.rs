//! Judges the files of the conformance set `invalid`, each in a process of its own, so that what one takes in time
//! and memory is its own too. Used by the test `invalid` and by the example of the same name.

mod rows;
mod verdict;
mod walk;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

pub use verdict::judge;

/// The set.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/invalid");

/// What one file may take: time of the processor, so that a busy machine changes nothing, and memory.
const MOST_MS: u64 = 5_000;
const MOST_KIB: u64 = 256 * 1024;

/// After so long a child that does not answer has hung.
const HUNG: Duration = Duration::from_secs(60);

/// The environment variable that names the file a child process judges.
pub const FILE: &str = "TIDEGATE_INVALID_FILE";

/// Begins the line with which a child answers.
const ANSWER: &str = "judged: ";

/// The folder of the set, or nothing where it is absent and not required.
pub fn folder(name: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(FOLDER);
    if folder.join("manifest.json").is_file() {
        return Some(folder);
    }
    let required = std::env::var_os("TIDEGATE_REQUIRE").is_some_and(|value| value == "1");
    assert!(!required, "the conformance data is required and not there");
    eprintln!("SKIPPED {name}: ../shared/conformance is not there");
    None
}

/// What became of one file.
pub struct Outcome {
    pub file: String,
    /// Why it failed.
    pub failure: Option<String>,
    /// Milliseconds of the processor.
    pub took_ms: u64,
    /// The most memory that was resident.
    pub peak_kib: u64,
}

/// Judges every file of the manifest; `child` makes the process that answers for one.
pub fn run(folder: &Path, child: impl Fn() -> Command) -> Vec<Outcome> {
    manifest(folder)
        .iter()
        .map(|entry| {
            let file = entry["file"].as_str().unwrap_or_default();
            judge_apart(file, child())
        })
        .collect()
}

/// The manifest's entries.
pub fn manifest(folder: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(folder.join("manifest.json")).expect("the manifest can be read");
    serde_json::from_str(&text).expect("the manifest is JSON")
}

fn judge_apart(file: &str, mut command: Command) -> Outcome {
    let mut child = command
        .env(FILE, file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a child process");
    let (sender, answers) = mpsc::channel();
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        // A child that was ended leaves what it wrote so far.
        let _ = out
            .as_mut()
            .map(|out| std::io::Read::read_to_string(out, &mut text));
        let _ = sender.send(text);
    });
    let complaints = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = err
            .as_mut()
            .map(|err| std::io::Read::read_to_end(err, &mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let answer = answers.recv_timeout(HUNG);
    if answer.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().expect("the child's end");
    reader.join().expect("the reader ends");
    let complaint = complaints.join().expect("the reader ends");
    let mut outcome = Outcome {
        file: file.to_owned(),
        failure: None,
        took_ms: 0,
        peak_kib: 0,
    };
    outcome.failure = match answer {
        Err(_) => Some("it hangs".to_owned()),
        Ok(text) => match text.lines().find_map(|line| line.split_once(ANSWER)) {
            None => Some(format!("no answer, {status}: {}", complaint.trim())),
            Some((_, answer)) => read(answer, &mut outcome),
        },
    };
    outcome
}

/// Takes an answer apart: peak, time, and the reason for a failure.
fn read(answer: &str, outcome: &mut Outcome) -> Option<String> {
    let mut parts = answer.splitn(3, ' ');
    let mut number = || parts.next()?.parse().ok();
    outcome.peak_kib = number()?;
    outcome.took_ms = number()?;
    match parts.next().filter(|reason| !reason.is_empty()) {
        Some(reason) => Some(reason.replace('\u{1f}', "\n")),
        None if outcome.peak_kib > MOST_KIB => Some(format!("it takes {} KiB", outcome.peak_kib)),
        None if outcome.took_ms > MOST_MS => Some(format!("it takes {} ms", outcome.took_ms)),
        None => None,
    }
}

/// In a child process: judges the file it is asked for and answers. True if it is a child.
pub fn answer_as_child() -> bool {
    let Some(file) = std::env::var_os(FILE).map(|file| file.to_string_lossy().into_owned()) else {
        return false;
    };
    let reason = judge(Path::new(FOLDER), &file).err().unwrap_or_default();
    println!(
        "{ANSWER}{} {} {}",
        peak_kib(),
        took_ms(),
        reason.replace('\n', "\u{1f}")
    );
    true
}

/// The most memory that this process had resident.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// The time of the processor that this process has taken.
fn took_ms() -> u64 {
    let taken = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    u64::try_from(taken.tv_sec).unwrap_or(u64::MAX) * 1_000
        + u64::try_from(taken.tv_nsec / 1_000_000).unwrap_or(0)
}
