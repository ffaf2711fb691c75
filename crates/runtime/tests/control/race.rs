//! Cancel, suspend, resume and completion fired at each other: every instance ends in a lawful state, with one outcome and a
//! journal that explains it. `TIDEGATE_LONG` makes it long, `TIDEGATE_SEED` gives the dice.

use std::sync::Arc;
use std::time::Duration;

use tidegate::SuspendRequest;
use tidegate::model::{SubStatus, Variables};

use super::hold::held;
use crate::support::{Stand, eventually, line, stand, task};

/// A small generator of numbers: the same seed gives the same ones.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

async fn one(stand: Arc<Stand>, seed: u64) -> SubStatus {
    let mut dice = Dice(seed | 1);
    let is_external = dice.roll(2) == 0;
    let process = if is_external { "outside" } else { "inside" };
    let key = stand.start(process, "{}").await.instance;
    let mut calls = Vec::new();
    for _ in 0..dice.roll(6) {
        let (runtime, verb, turns) = (stand.runtime.clone(), dice.roll(5), dice.roll(4));
        let at_once = dice.roll(4) == 0;
        calls.push(tokio::spawn(async move {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            let answer = match verb {
                0 => runtime
                    .ask_to_cancel(key, &tidegate::CancelRequest::by("op", Duration::ZERO))
                    .await
                    .map(drop),
                1 | 2 => {
                    let request = SuspendRequest {
                        now: at_once,
                        wait: Duration::ZERO,
                        ..held()
                    };
                    runtime.suspend(key, request).await.map(drop)
                }
                _ => runtime.resume_instance(key, None, "op").await.map(drop),
            };
            if let Err(error) = answer {
                assert!(
                    ["instance-ended", "instance-cancelling"].contains(&error.code()),
                    "{error}"
                );
            }
        }));
    }
    if is_external {
        let mut wanted = crate::support::jobs("outside", Duration::ZERO);
        wanted.max_jobs = 1;
        for job in stand.runtime.activate_jobs(wanted).await.unwrap() {
            // It may be of another instance, cancelled meanwhile, and its lease is never lost to a hold.
            let done = stand
                .runtime
                .complete_job(job.job, &job.lease_token, Variables::new())
                .await;
            if let Err(error) = done {
                assert!(
                    [
                        "job-not-found",
                        "instance-ended",
                        "instance-cancelling",
                        "instance-not-found",
                        "stale-lease"
                    ]
                    .contains(&error.code()),
                    "{error}"
                );
            }
        }
    }
    for call in calls {
        call.await.unwrap();
    }
    // Whatever came: let it go, and either it ends by itself or it is ended.
    match stand.runtime.resume_instance(key, None, "op").await {
        Ok(_) => {}
        Err(error) => assert!(
            ["instance-ended", "instance-cancelling"].contains(&error.code()),
            "{error}"
        ),
    }
    if is_external {
        let mut wanted = crate::support::jobs("outside", Duration::ZERO);
        wanted.max_jobs = 4;
        for job in stand.runtime.activate_jobs(wanted).await.unwrap() {
            let _ = stand
                .runtime
                .complete_job(job.job, &job.lease_token, Variables::new())
                .await;
        }
        if dice.roll(2) == 0 {
            stand.runtime.cancel(key, None, "op").await.unwrap();
        }
    }
    let wait = if is_external {
        Duration::from_millis(1)
    } else {
        Duration::from_secs(60)
    };
    if stand.runtime.wait(key, wait).await.is_err() {
        assert!(
            is_external,
            "an instance without outside work ends by itself: {:?}",
            stand.runtime.why(key).await
        );
        stand.runtime.cancel(key, None, "op").await.unwrap();
    }
    let row = stand.runtime.instance(key).await.unwrap().row;
    let events = stand.events(key).await;
    explained(&events, row.sub_status, seed);
    row.sub_status
}

/// The journal tells one end, at its end, and holds that begin and end in turn.
fn explained(events: &[String], sub_status: SubStatus, seed: u64) {
    let is_end = |event: &&String| {
        ["InstanceCompleted", "InstanceCancelled", "InstanceFaulted"].contains(&event.as_str())
    };
    let ends: Vec<_> = events.iter().filter(is_end).collect();
    let wanted = match sub_status {
        SubStatus::Finished => "InstanceCompleted",
        SubStatus::Cancelled => "InstanceCancelled",
        other => panic!("seed {seed}: unlawful state {other:?}"),
    };
    assert_eq!(ends, [wanted], "seed {seed}: {events:?}");
    assert_eq!(
        events.last().map(String::as_str),
        Some(wanted),
        "seed {seed}: {events:?}"
    );
    let asked = events.iter().position(|event| event == "CancelRequested");
    assert_eq!(
        asked.is_some(),
        sub_status == SubStatus::Cancelled,
        "seed {seed}: {events:?}"
    );
    let mut is_held = false;
    for event in events {
        match event.as_str() {
            "InstanceHeld" => is_held = true,
            "InstanceReleased" => {
                assert!(is_held, "seed {seed}: {events:?}");
                is_held = false;
            }
            "InstanceCompleted" => assert!(!is_held, "seed {seed}: it went on while it was held: {events:?}"),
            _ => {}
        }
    }
    let done = events
        .iter()
        .filter(|event| event.starts_with("JobCompleted"))
        .count();
    assert!(done <= 2, "seed {seed}: {events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn n04_n08_cancel_suspend_resume_and_complete_are_fired_at_each_other() {
    // A number of its own, or the long lane's.
    let long =
        std::env::var("TIDEGATE_LONG").map(|text| text.parse().ok().filter(|n| *n > 1).unwrap_or(100_000));
    let total: u64 = long.unwrap_or(2_000);
    let seed: u64 = std::env::var("TIDEGATE_SEED").map_or(0x5eed, |text| text.parse().unwrap());
    println!("TIDEGATE_SEED={seed}");
    let stand = Arc::new(stand().await);
    stand
        .deploy(line("outside", &[("w", task("w", "outside", &[]))]))
        .await;
    let steps = [
        ("a", task("a", "demo.noop", &[])),
        ("b", task("b", "demo.sleep", &[("duration", "PT0.001S")])),
    ];
    stand.deploy(line("inside", &steps)).await;
    let began = std::time::Instant::now();
    let mut counts = [0_u64; 9];
    const AT_ONCE: u64 = 64;
    let mut next = 0;
    let mut running = tokio::task::JoinSet::new();
    while next < total || !running.is_empty() {
        while next < total && (running.len() as u64) < AT_ONCE {
            next += 1;
            running.spawn(one(
                stand.clone(),
                (seed + next).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            ));
        }
        if let Some(ended) = running.join_next().await {
            counts[usize::from(ended.unwrap().code())] += 1;
        }
    }
    println!(
        "{total} instances in {:?}: {} completed, {} cancelled",
        began.elapsed(),
        counts[usize::from(SubStatus::Finished.code())],
        counts[usize::from(SubStatus::Cancelled.code())]
    );
    stand.idle().await;
    let stored = stand.runtime.counts().await.unwrap();
    assert_eq!(stored, counts, "what is stored is what was seen");
    // What came for an instance that had ended by then is dropped without a cycle, so idleness does not wait for it.
    eventually("nothing stays in the queue", async || {
        stand.runtime.status().await.unwrap().stimulus_queue.depth == 0
    })
    .await;
}
