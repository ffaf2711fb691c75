//! Faults of a host that a test can begin and end: system calls that fail or take long, and disks of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::load::{Server, Site};

/// Says that a test does not run here, and fails where every test must.
pub fn skip(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
    assert!(std::env::var("TIDEGATE_REQUIRE").as_deref() != Ok("1"), "{why}");
}

/// True if the command is there and does what it is asked.
pub fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

pub fn can_trace() -> bool {
    works("strace", &["-o", "/dev/null", "true"])
}

pub fn can_mount() -> bool {
    works("unshare", &["--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"])
}

/// System calls of a server that go wrong while this lives.
pub struct BrokenCalls {
    tracer: Child,
}

impl BrokenCalls {
    /// Begins: `calls` and `fault` in the words of strace, for example `fdatasync` and `delay_enter=100000`.
    pub fn begin(server: &Server, calls: &str, fault: &str) -> Self {
        let mut tracer = Command::new("strace")
            .args(["-f", "-o", "/dev/null", "-e"])
            .arg(format!("trace={calls}"))
            .arg("-e")
            .arg(format!("inject={calls}:{fault}"))
            .arg("-p")
            .arg(server.pid().as_raw_nonzero().to_string())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = std::io::BufReader::new(tracer.stderr.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut said, &mut line).unwrap();
        assert!(line.contains("attached"), "{line}");
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Self { tracer }
    }
}

impl Drop for BrokenCalls {
    fn drop(&mut self) {
        let pid = Pid::from_raw(i32::try_from(self.tracer.id()).unwrap()).unwrap();
        let _ = kill_process(pid, Signal::INT);
        let _ = self.tracer.wait();
    }
}

/// A small disk that only servers of this test see; it outlives them, and is gone with this.
pub struct Disk {
    holder: Child,
    pub path: PathBuf,
}

impl Disk {
    pub fn mount(path: &Path, megabytes: usize) -> Self {
        std::fs::create_dir_all(path).unwrap();
        let script = r#"mount -t tmpfs -o size="$1" tmpfs "$2" && echo there && exec cat"#;
        let mut holder = Command::new("unshare")
            .args(["--mount", "sh", "-c", script, "sh"])
            .arg(format!("{megabytes}m"))
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = std::io::BufReader::new(holder.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut said, &mut line).unwrap();
        assert_eq!(line, "there\n");
        holder.stdout = Some(said.into_inner());
        Self {
            holder,
            path: path.to_owned(),
        }
    }

    /// A site whose servers see this disk.
    pub fn site(&self, folder: &Path) -> Site {
        let mut site = Site::new(folder).with_data(self.path.join("data"));
        site.wrapper = vec!["nsenter".to_owned(), self.namespace(), "--".to_owned()];
        site
    }

    fn namespace(&self) -> String {
        format!("--mount=/proc/{}/ns/mnt", self.holder.id())
    }

    /// A file on it, as this process reaches it.
    pub fn seen_from_outside(&self, file: &str) -> PathBuf {
        let inside = self.path.strip_prefix("/").unwrap();
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        root.join(inside).join(file)
    }

    /// Mounts it anew with this option.
    pub fn remount(&self, option: &str) {
        let path = self.path.to_str().unwrap();
        let options = format!("remount,{option}");
        assert!(works(
            "nsenter",
            &[&self.namespace(), "--", "mount", "-o", &options, path]
        ));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
