//! W3: many timers due within a short time, on the real clock. None is lost, none fires twice, and how late they are: when a
//! handler behind the timer runs, against the time that the model asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tidegate::activity::{Activity, ActivityContext, ActivityFuture};
use tidegate::api::{Resource, StartRequest};
use tidegate::model::{Json, SubStatus, Timestamp, Variables};
use tidegate::status::DrainTrigger;
use tidegate::{CommitPolicy, Runtime};

use crate::measure::{cpu_ms, percentile, rounded};
use crate::setting::{self, Said, flow, option, print, process, task};

const CLIENTS: usize = 128;
/// How long after the last due time everything may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// Options: `count` (100,000), `within_ms` to have only one (10,000 and, above capacity, 1,000), `lead_ms`: how long it may
/// take until all are armed, by default by the rate of the first ones.
pub fn run(said: &Said) {
    let only: u64 = option(said, "within_ms", 0);
    for within_ms in [10_000, 1_000] {
        if only == 0 || only == within_ms {
            setting::on_tokio(one(said, within_ms));
        }
    }
    if only != 0 && only != 10_000 && only != 1_000 {
        setting::on_tokio(one(said, only));
    }
}

fn timers() -> Resource {
    let body = [
        r#"<startEvent id="start"/><endEvent id="end"/><intermediateCatchEvent id="timer"><timerEventDefinition><timeDate xsi:type="tFormalExpression">=at</timeDate></timerEventDefinition></intermediateCatchEvent>"#.to_owned(),
        task("fired", "bench.fired"),
        flow("start", "timer"),
        flow("timer", "fired"),
        flow("fired", "end"),
    ];
    process("timers", "", &body.concat())
}

/// When each timer fired, in microseconds of the wall clock; zero for not yet.
struct Fired {
    at: Arc<[AtomicI64]>,
    twice: AtomicI64,
}

impl Activity for Fired {
    fn run(&self, context: ActivityContext) -> ActivityFuture {
        let now = micros();
        let number = context
            .variables
            .get("n")
            .and_then(|n| n.text().parse::<usize>().ok());
        let slot = number.and_then(|n| self.at.get(n)).expect("a number of a timer");
        if slot.swap(now, Ordering::Relaxed) != 0 {
            self.twice.fetch_add(1, Ordering::Relaxed);
        }
        Box::pin(std::future::ready(Ok(Variables::new())))
    }

    fn is_quick(&self) -> bool {
        true
    }
}

fn micros() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

async fn one(said: &Said, within_ms: u64) {
    let count: usize = option(said, "count", 100_000);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let fired = Arc::new(Fired {
        at: (0..count).map(|_| AtomicI64::new(0)).collect(),
        twice: AtomicI64::new(0),
    });
    let handler = fired.clone();
    let runtime = setting::start_with(folder.path(), CommitPolicy::Activity, |builder| {
        builder.activity("bench.fired", handler)
    })
    .await;
    runtime
        .deploy(vec![timers()], None, "bench")
        .await
        .expect("the process deploys");

    // How fast they are armed says when the first may be due.
    let trial = (count / 50).clamp(1, 2_000);
    let began = Instant::now();
    let far: Arc<[i64]> = vec![micros() / 1_000 + 86_400_000; trial].into();
    arm(&runtime, &far).await;
    let usual = began.elapsed().as_secs_f64() * 1e3 / trial as f64 * count as f64 * 2.0 + 1_000.0;
    let lead_ms: u64 = option(said, "lead_ms", usual as u64);
    let first = micros() / 1_000 + lead_ms as i64;
    let due: Arc<[i64]> = (0..count)
        .map(|n| first + (within_ms as usize * n / count) as i64)
        .collect();
    arm(&runtime, &due).await;
    let early_ms = first - micros() / 1_000;
    assert!(
        early_ms > 0,
        "they were due before all of them were armed; give a longer lead_ms"
    );

    tokio::time::sleep(Duration::from_millis(early_ms as u64)).await;
    let cpu = cpu_ms();
    let until = Instant::now() + Duration::from_millis(within_ms) + PATIENCE;
    let finished = usize::from(SubStatus::Finished.code());
    while runtime.counts().await.expect("they can be counted")[finished] < count as u64 {
        assert!(Instant::now() < until, "{} timers are lost", unfired(&fired));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let cpu = cpu_ms() - cpu;
    assert_eq!(unfired(&fired), 0, "none is lost");
    assert_eq!(fired.twice.load(Ordering::Relaxed), 0, "none fires twice");
    report(&due, &fired, within_ms, cpu);
    runtime.drain(DrainTrigger::HostStopSignal).await;
    runtime.close().await;
}

fn unfired(fired: &Fired) -> usize {
    let is_missing = |at: &&AtomicI64| at.load(Ordering::Relaxed) == 0;
    fired.at.iter().filter(is_missing).count()
}

fn report(due: &[i64], fired: &Fired, within_ms: u64, cpu: f64) {
    let at: Vec<f64> = fired
        .at
        .iter()
        .map(|at| at.load(Ordering::Relaxed) as f64 / 1e3)
        .collect();
    let mut in_order = at.clone();
    in_order.sort_by(f64::total_cmp);
    let (first, last) = (due[0] as f64, in_order.last().copied().unwrap_or_default());
    let per_ms = due.len() as f64 / (last - first).max(1.0);
    let mut late = Vec::new();
    let mut allowed = 0;
    let mut backlog_max = 0;
    for (n, (due, at)) in due.iter().zip(&at).enumerate() {
        let lateness = at - *due as f64;
        assert!(
            lateness > -1.0,
            "a timer fired {} ms before it was due",
            -lateness
        );
        late.push(lateness);
        // Those due before it that had not fired when it fell due.
        let backlog = n.saturating_sub(in_order.partition_point(|at| *at <= *due as f64));
        backlog_max = backlog_max.max(backlog);
        allowed += usize::from(lateness <= 50.0 + backlog as f64 / per_ms);
    }
    let within_50 = late.iter().filter(|late| **late <= 50.0).count();
    late.sort_by(f64::total_cmp);
    let tenths: Vec<f64> = (1..=10)
        .map(|n| (percentile(&in_order, f64::from(n) / 10.0) - first).round())
        .collect();
    let share = |part: usize| rounded(part as f64 / late.len() as f64);
    print(json!({
        "bench": "W3", "store": "sqlite", "policy": "activity", "timers": late.len(), "within_ms": within_ms,
        "per_s": (per_ms * 1e3).round(),
        "late_p50_ms": rounded(percentile(&late, 0.5)),
        "late_p99_ms": rounded(percentile(&late, 0.99)),
        "late_max_ms": rounded(percentile(&late, 1.0)),
        "share_within_50_ms": share(within_50),
        "backlog_max": backlog_max,
        "share_within_50_ms_and_backlog": share(allowed),
        "cpu_ms_per_timer": rounded(cpu / late.len() as f64),
        "ms_until_each_tenth_had_fired": tenths,
        "lost": 0, "twice": 0,
    }));
}

/// Starts an instance for each due time; its number is its place.
async fn arm(runtime: &Runtime, due: &Arc<[i64]>) {
    let mut clients = Vec::new();
    for client in 0..CLIENTS {
        let (runtime, due) = (runtime.clone(), due.clone());
        clients.push(tokio::spawn(async move {
            for n in (client..due.len()).step_by(CLIENTS) {
                let mut variables = Variables::new();
                variables.set("n", Json::of(&n));
                variables.set("at", Json::of(&Timestamp::from_ms(due[n]).to_string()));
                let request = StartRequest::latest("timers").variables(variables);
                runtime.start(request).await.expect("the start is taken");
            }
        }));
    }
    for client in clients {
        client.await.expect("a client runs to its end");
    }
}
