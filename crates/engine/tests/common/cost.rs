//! What a piece of work costs: allocations and bytes, counted by the allocator of the test, and the processor's time of the
//! thread that does it. None of them depends on what else the machine does, as the time of a clock on the wall would.

#![allow(unsafe_code)]
#![allow(dead_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// Of each thread its own, so that tests which run beside each other do not meet. Constants, and nothing to drop: reading them
// allocates nothing.
thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

fn taken(bytes: usize) {
    // A thread that ends may have put its counters away.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
    let _ = BYTES.try_with(|count| count.set(count.get() + bytes as u64));
    let live = LIVE.try_with(|live| {
        live.set(live.get() + bytes as i64);
        live.get()
    });
    if let Ok(live) = live {
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live)));
    }
}

fn given_back(bytes: usize) {
    let _ = LIVE.try_with(|live| live.set(live.get() - bytes as i64));
}

// SAFETY: every request goes to the system's allocator as it came; what is done besides touches thread-local numbers only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        given_back(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        given_back(layout.size());
        taken(size);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// What a piece of work took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    pub allocations: u64,
    /// All bytes that were asked for.
    pub bytes: u64,
    /// The most bytes that lived at once, beside those that lived before.
    pub peak: u64,
    /// The processor's time of this thread.
    pub time: Duration,
}

/// Does the work, all of it on this thread.
pub fn of<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    let before = (ALLOCATIONS.get(), BYTES.get(), LIVE.get(), processor());
    PEAK.set(before.2);
    let done = work();
    let time = processor() - before.3;
    let cost = Cost {
        allocations: ALLOCATIONS.get() - before.0,
        bytes: BYTES.get() - before.1,
        peak: u64::try_from(PEAK.get() - before.2).unwrap_or(0),
        time,
    };
    (done, cost)
}

fn processor() -> Duration {
    let taken = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(taken.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(taken.tv_nsec).unwrap_or(0))
}

/// Each further unit costs what those before it cost, and a fifth more at most.
const MOST_GROWTH: f64 = 1.2;

/// As much for the processor's time from the smallest to the largest size, which caches and neighbours sway: a quadratic cost
/// would quadruple.
const MOST_GROWTH_OF_TIME: f64 = 3.0;

/// The shortest time that says anything.
const SHORTEST: Duration = Duration::from_millis(2);

/// Does work of the sizes `n`, `2n` and `4n`: what each unit costs stays the same, in allocations, in bytes, in the most
/// memory at once and in the processor's time. `prepare` makes what the work needs, and is not counted.
#[track_caller]
pub fn grows_in_proportion<P, T>(
    what: &str,
    n: usize,
    prepare: impl Fn(usize) -> P,
    work: impl Fn(P, usize) -> T,
) {
    let [once, twice, four_times] = [n, 2 * n, 4 * n].map(|size| {
        // The counts are the same each time; the shortest time is the one that nobody disturbed.
        let costs = [(); 3].map(|()| {
            let prepared = prepare(size);
            of(|| work(prepared, size)).1
        });
        let time = costs.iter().map(|cost| cost.time).min().unwrap_or_default();
        Cost { time, ..costs[2] }
    });
    eprintln!("{what}, {n} and its double and fourfold: {once:?}, {twice:?}, {four_times:?}");
    // From one size to the next, so that what does not depend on the size is left out.
    let grows = |name: &str, of: &dyn Fn(&Cost) -> f64, most: f64| {
        let first = (of(&twice) - of(&once)) / n as f64;
        let second = (of(&four_times) - of(&twice)) / (2 * n) as f64;
        // Tables that double do so at their own sizes: less than a hundredth of a unit.
        const NOISE: f64 = 0.01;
        assert!(
            second <= first.max(0.0) * most + NOISE,
            "{what}: {name} for each grow from {first} to {second}"
        );
    };
    grows("allocations", &|cost| cost.allocations as f64, MOST_GROWTH);
    grows("bytes", &|cost| cost.bytes as f64, MOST_GROWTH);
    grows("bytes at once", &|cost| cost.peak as f64, MOST_GROWTH);
    if four_times.time >= SHORTEST {
        let each = |cost: &Cost, size: usize| cost.time.as_secs_f64() / size as f64;
        let (first, last) = (each(&once, n), each(&four_times, 4 * n));
        assert!(
            last <= first * MOST_GROWTH_OF_TIME,
            "{what}: the processor's time for each grows from {first} s to {last} s"
        );
    }
}
