//! Worker processes that die, lie or hang, and that must be gone when they are told to.

use std::fs;
use std::future::{pending, ready};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tidegate::activity::ActivityError;
use tidegate::model::Variables;
use tidegate_script::Options;

use crate::support::{Scripts, WORKER, hasty, patient};

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

/// A worker that leaves its process id in a file.
fn traced(file: &Path) -> Command {
    shell(&format!("echo $$ > '{}'; exec '{WORKER}'", file.display()))
}

fn pid(file: &Path) -> Pid {
    Pid::from_raw(fs::read_to_string(file).unwrap().trim().parse().unwrap()).unwrap()
}

fn traced_scripts(options: Options) -> (tempfile::TempDir, PathBuf, Scripts) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let written = file.clone();
    let scripts = Scripts::by(options, move |_| traced(&written));
    (folder, file, scripts)
}

#[tokio::test]
async fn a_worker_that_does_not_become_ready_fails_the_script_and_the_next_one_works() {
    for (broken, expected) in [
        ("exit 3", "exit status: 3"),
        ("kill -9 $$", "signal: 9"),
        ("echo garbage garbage garbage", "bytes are said to come"),
        ("printf '\\5\\0\\0\\0{{{{{'", "not"),
        ("printf '\\2\\0\\0\\0{}'", "cannot be read"),
        ("printf '\\377\\0\\0\\0{'", "exit status: 0"),
    ] {
        let broken = broken.to_owned();
        let scripts = Scripts::by(patient(), move |turn| {
            if turn == 0 {
                shell(&broken)
            } else {
                Command::new(WORKER)
            }
        });
        let message = scripts.failure("1").await;
        assert!(
            message.starts_with("a script worker could not be started"),
            "{message}"
        );
        assert!(message.contains(expected), "{message}");
        assert_eq!(scripts.value("1 + 1", "{}").await, "2");
    }
    let missing = Scripts::by(patient(), |_| Command::new("/no/such/program"));
    assert!(missing.failure("1").await.contains("could not be started"));
}

#[tokio::test]
async fn a_worker_that_says_nothing_is_given_up() {
    let options = Options {
        start: Duration::from_millis(200),
        ..patient()
    };
    let scripts = Scripts::by(options, |_| shell("exec sleep 1000"));
    assert!(scripts.failure("1").await.contains("not ready after 200ms"));
}

#[tokio::test]
async fn a_worker_that_lies_about_a_script_is_killed() {
    // Ready, and then an answer to a script that was not asked, or none that can be read.
    let ready = r#"printf '\007\0\0\0"Ready"'"#;
    for (answer, expected) in [
        (
            r#"printf '\052\0\0\0{"number":99,"outcome":{"Failed":"other"}}'"#,
            "another script",
        ),
        ("head -c 100 /dev/zero", "cannot be read"),
        (
            "head -c 100 /dev/urandom | tr '\\0-\\177' '\\377'",
            "are said to come",
        ),
        ("exit 4", "exit status: 4"),
    ] {
        let lying = format!("{ready}; {answer}; exec sleep 1000");
        let scripts = Scripts::by(patient(), move |turn| {
            if turn == 0 {
                shell(&lying)
            } else {
                Command::new(WORKER)
            }
        });
        let message = scripts.failure("1").await;
        assert!(message.contains(expected), "{answer}: {message}");
        assert_eq!(scripts.value("1 + 1", "{}").await, "2");
    }
}

#[tokio::test]
async fn what_a_worker_said_before_it_closed_its_input_is_told() {
    // More than a pipe takes: the owner's question breaks off for certain, with the answer already there.
    let question = format!("1 /*{}*/", "x".repeat(1 << 20));
    let scripts = Scripts::by(patient(), |_| {
        shell(r#"printf '\007\0\0\0"Ready"'; echo garbage garbage garbage; exec <&-"#)
    });
    let message = scripts.failure(&question).await;
    assert!(message.contains("bytes are said to come"), "{message}");
}

#[tokio::test]
async fn a_worker_that_was_killed_while_idle_is_replaced_unseen() {
    let (_folder, file, scripts) = traced_scripts(patient());
    scripts.value("1", "{}").await;
    for signal in [Signal::TERM, Signal::INT] {
        kill_process(pid(&file), signal).unwrap();
        assert_eq!(scripts.value("1 + 1", "{}").await, "2");
    }
    assert_eq!(scripts.started(), 3);
}

#[tokio::test]
async fn a_stop_kills_the_worker() {
    let (_folder, file, scripts) = traced_scripts(patient());
    scripts.value("1", "{}").await;
    let worker = pid(&file);
    let none = Variables::new();
    // The stop comes at no special moment of a script that never ends.
    let stop = tokio::time::sleep(Duration::from_millis(50));
    let stopped = scripts.activity.evaluate("for (;;) {}", None, &none, stop).await;
    assert_eq!(stopped, Err(ActivityError::Stopped));
    assert!(test_kill_process(worker).is_err(), "the worker is gone");
    assert_eq!(
        scripts.activity.evaluate("1", None, &none, ready(())).await,
        Err(ActivityError::Stopped)
    );
    assert_eq!(scripts.value("1 + 1", "{}").await, "2");
    assert_eq!(scripts.started(), 2);
}

#[tokio::test]
async fn closing_ends_the_idle_workers_and_takes_no_more() {
    let (_folder, file, scripts) = traced_scripts(patient());
    scripts.value("1", "{}").await;
    scripts.activity.close().await;
    assert!(test_kill_process(pid(&file)).is_err(), "the worker is gone");
    assert!(scripts.failure("1").await.contains("closing"));
}

#[tokio::test]
async fn no_more_workers_run_than_there_may_be_and_waiting_has_an_end() {
    let options = Options {
        workers: 1,
        wait: Duration::from_millis(100),
        ..hasty()
    };
    let scripts = Scripts::new(options);
    let none = Variables::new();
    let long = scripts.activity.evaluate("for (;;) {}", None, &none, pending());
    let (long, waiting) = tokio::join!(long, scripts.failure("1"));
    assert!(long.is_err());
    assert!(waiting.contains("no script worker was free"), "{waiting}");

    let scripts = Scripts::new(patient());
    let values = tokio::join!(
        scripts.value("1", "{}"),
        scripts.value("2", "{}"),
        scripts.value("3", "{}")
    );
    assert_eq!(values, ("1".into(), "2".into(), "3".into()));
    assert_eq!(scripts.started(), 2);
}

#[tokio::test]
async fn a_worker_is_replaced_after_its_number_of_scripts() {
    let scripts = Scripts::new(Options {
        scripts_per_worker: 2,
        ..patient()
    });
    for _ in 0..5 {
        scripts.value("1", "{}").await;
    }
    assert_eq!(scripts.started(), 3);
}
