use std::path::Path;
use std::process::Command;

use super::fault::{skip, works};
use crate::common::load::{Load, Site};

/// The clock on the wall of one process, moved by the seconds that a file holds.
const MOVED: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static volatile long *seconds;

__attribute__((constructor)) static void begin(void) {
    int file = open(getenv("MOVED_BY"), O_RDONLY);
    seconds = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (clock == CLOCK_REALTIME && seconds && seconds != MAP_FAILED) time->tv_sec += *seconds;
    return result;
}
"#;

const HOUR: i64 = 3600;

/// The wall clock goes an hour ahead, back, a day back and to the right time again, under load: nothing is lost or
/// ends twice, and no start has to wait for the clock.
#[tokio::test(flavor = "multi_thread")]
async fn clock_steps_lose_nothing() {
    if !works("cc", &["--version"]) {
        return skip("clock_steps_lose_nothing", "there is no C compiler");
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("moved.c"), folder.path().join("moved.so"));
    std::fs::write(&source, MOVED).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(&source)
        .arg("-ldl");
    assert!(compiler.status().unwrap().success());
    let moved_by = folder.path().join("seconds");
    step(&moved_by, 0);
    let (mut site, load) = (Site::new(folder.path()), Load::default());
    for (name, value) in [("LD_PRELOAD", &library), ("MOVED_BY", &moved_by)] {
        site.environment
            .push((name.to_owned(), value.to_str().unwrap().to_owned()));
    }
    let server = site.start();
    site.client(&server).deploy().await;
    let clients = load.begin(&site.client(&server), 8);
    for seconds in [HOUR, 0, -24 * HOUR, 0, HOUR] {
        load.more(50).await;
        step(&moved_by, seconds);
    }
    load.more(50).await;
    clients.stop().await;
    load.assert_nothing_refused();
    let sum = load.settle(&site.client(&server)).await;
    eprintln!("clock: 5 steps, {sum}");
    assert!(!site.log().contains("panicked"), "{}", site.log());
    assert_eq!(server.stop().code(), Some(0), "{}", site.log());
}

fn step(file: &Path, seconds: i64) {
    // In place: the process has it mapped.
    use std::os::unix::fs::FileExt as _;
    let options = std::fs::File::options()
        .create(true)
        .write(true)
        .truncate(false)
        .open(file);
    options.unwrap().write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
}
