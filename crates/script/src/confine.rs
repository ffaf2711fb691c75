//! The limits that a worker process takes upon itself before it runs any script.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Room for the program itself beside a script's values: code, stacks, and the allocator's reserves.
const OWN_BYTES: u64 = 192 << 20;
/// A request is held as bytes, as text and as its parts.
const COPIES_OF_INPUT: u64 = 4;
/// Input, output and errors. With no further descriptor there is no file, no socket and no pipe.
const OPEN_FILES: u64 = 3;
/// Processor time beyond a script's wall time, for the interpreter to be built and torn down.
const CPU_EXTRA_SECONDS: u64 = 2;

/// Gives up what a script must never have. All of it holds until the process ends.
///
/// # Errors
/// The system refused one of the limits: no script may run then.
pub(crate) fn confine(memory_bytes: u64, input_bytes: u32) -> io::Result<()> {
    let space = address_space()?
        .saturating_add(OWN_BYTES)
        .saturating_add(memory_bytes)
        .saturating_add(u64::from(input_bytes) * COPIES_OF_INPUT);
    hold(Resource::As, space)?;
    hold(Resource::Core, 0)?;
    hold(Resource::Fsize, 0)?;
    hold(Resource::Nproc, 0)?;
    hold(Resource::Nofile, OPEN_FILES)?;
    #[cfg(target_os = "linux")]
    {
        rustix::thread::set_no_new_privs(true)?;
        // Other processes of the same user cannot read this one's memory, nor this one theirs.
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    }
    Ok(())
}

/// Lets the next script use as much processor time as wall time: the kernel's own limit, should the owner be stuck.
///
/// # Errors
/// The system refused it.
pub(crate) fn allow_time(time_ms: u64) -> io::Result<()> {
    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec;
    let until = u64::try_from(used)
        .unwrap_or(0)
        .saturating_add(time_ms.div_ceil(1_000))
        .saturating_add(CPU_EXTRA_SECONDS);
    let maximum = getrlimit(Resource::Cpu).maximum;
    Ok(setrlimit(
        Resource::Cpu,
        Rlimit {
            current: Some(least(until, maximum)),
            maximum,
        },
    )?)
}

fn hold(resource: Resource, most: u64) -> io::Result<()> {
    let most = Some(least(most, getrlimit(resource).maximum));
    Ok(setrlimit(
        resource,
        Rlimit {
            current: most,
            maximum: most,
        },
    )?)
}

fn least(wanted: u64, allowed: Option<u64>) -> u64 {
    allowed.map_or(wanted, |allowed| wanted.min(allowed))
}

/// Bytes of address space in use: an allocator may have reserved much of it beforehand.
#[cfg(target_os = "linux")]
fn address_space() -> io::Result<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = pages
        .split(' ')
        .next()
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0);
    Ok(pages * rustix::param::page_size() as u64)
}

#[cfg(not(target_os = "linux"))]
fn address_space() -> io::Result<u64> {
    Ok(1 << 30)
}
