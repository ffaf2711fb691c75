//! A runtime that runs step by step on the thread that asks for it.

mod support;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use support::*;
use tidegate::status::DrainTrigger;
use tidegate::stepped::{self, Step, Steps};

/// Counts the steps and lets each one wait ten milliseconds.
#[derive(Default)]
struct Slow {
    rounds: AtomicU64,
    reads: AtomicU64,
}

impl Steps for Slow {
    fn before(&self, step: Step) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        match step {
            Step::Round(_) => self.rounds.fetch_add(1, Ordering::Relaxed),
            Step::Read => self.reads.fetch_add(1, Ordering::Relaxed),
        };
        Box::pin(tokio::time::sleep(Duration::from_millis(10)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_stepped_runtime_has_no_thread_of_its_own_and_runs_on_simulated_time() {
    let slow = Arc::new(Slow::default());
    let _stepping = stepped::on_this_thread(slow.clone());
    let threads = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let (before, began) = (threads(), tokio::time::Instant::now());
    let stand = stand().await;
    stand.deploy(slow_line()).await;
    let ended = stand.run("slow", "{}").await;
    assert!(ended.sub_status.is_finished());
    assert_eq!(threads(), before, "a thread was started");
    stand.runtime.drain(DrainTrigger::HostStopSignal).await;
    assert!(stand.runtime.release().await);
    let steps = [&slow.rounds, &slow.reads].map(|count| count.load(Ordering::Relaxed));
    assert!(steps.iter().all(|count| *count > 0), "{steps:?}");
    assert!(
        began.elapsed() >= Duration::from_secs(5),
        "the task took no simulated time"
    );
}

/// A task that takes five seconds.
fn slow_line() -> tidegate::api::Resource {
    slow("slow", "demo.sleep", "PT5S")
}
