//! W2: instances park on a message; some of them get theirs. Then a restart with all the others parked.

use std::time::{Duration, Instant};

use serde_json::json;
use tidegate::api::{MessageRequest, Resource, StartRequest};
use tidegate::model::{SubStatus, Variables};
use tidegate::status::DrainTrigger;
use tidegate::{CommitPolicy, Runtime};

use crate::measure::{cpu_ms, percentile, resident_bytes, rounded};
use crate::setting::{self, Said, flow, option, print, process};

/// Clients that work one after the other.
const CLIENTS: u64 = 128;
/// How long the last messages may take to arrive.
const PATIENCE: Duration = Duration::from_secs(300);

fn waits() -> Resource {
    process(
        "waits",
        r#"<message id="m" name="go"><extensionElements><z:subscription correlationKey="=key"/></extensionElements></message>"#,
        &format!(
            r#"<startEvent id="start"/><intermediateCatchEvent id="catch"><messageEventDefinition messageRef="m"/></intermediateCatchEvent><endEvent id="end"/>{}{}"#,
            flow("start", "catch"),
            flow("catch", "end")
        ),
    )
}

/// Options: `count` (1,000,000) instances, `messages` (a tenth of them). A line for each tenth that parks.
pub fn run(said: &Said) {
    let count: u64 = option(said, "count", 1_000_000);
    let messages: u64 = option(said, "messages", count / 10).min(count);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    setting::on_tokio(async {
        let runtime = setting::start(folder.path(), CommitPolicy::Activity).await;
        runtime
            .deploy(vec![waits()], None, "bench")
            .await
            .expect("the process deploys");
        let step = count.div_ceil(10).max(1);
        let mut parked = 0;
        while parked < count {
            let goal = (parked + step).min(count);
            let (began, cpu) = (Instant::now(), cpu_ms());
            by_clients(&runtime, parked..goal, park).await;
            let more = (goal - parked) as f64;
            parked = goal;
            print(json!({
                "bench": "W2", "part": "park", "store": "sqlite", "policy": "activity", "in_flight": CLIENTS,
                "parked": parked,
                "per_s": (more / began.elapsed().as_secs_f64()).round(),
                "cpu_ms_per_instance": rounded((cpu_ms() - cpu) / more),
                "resident_mb": rounded(resident_bytes() as f64 / 1e6),
            }));
        }
        assert_eq!(suspended(&runtime).await, count, "all of them are parked");
        deliver(&runtime, messages, count).await;
        runtime.drain(DrainTrigger::HostStopSignal).await;
        runtime.close().await;
        drop(runtime);
        restart(folder.path(), count - messages).await;
    });
}

/// Each of the first `messages` instances gets its message: every tenth of the range, so that they are not the newest.
async fn deliver(runtime: &Runtime, messages: u64, count: u64) {
    let stride = (count / messages.max(1)).max(1);
    let (began, cpu) = (Instant::now(), cpu_ms());
    let mut times = by_clients(runtime, 0..messages, move |runtime, n| async move {
        let key = format!("k{}", n * stride);
        let began = Instant::now();
        let told = runtime.publish(message(key)).await.expect("the message is taken");
        assert_eq!(
            told.delivered_to.len(),
            1,
            "a message is one instance's: {told:?}"
        );
        began.elapsed().as_secs_f64() * 1e3
    })
    .await;
    let published = began.elapsed().as_secs_f64();
    while finished(runtime).await < messages {
        assert!(
            began.elapsed() < PATIENCE,
            "a message was lost: {} of {messages} have ended",
            finished(runtime).await
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (elapsed, cpu) = (began.elapsed().as_secs_f64(), cpu_ms() - cpu);
    assert_eq!(
        finished(runtime).await,
        messages,
        "only those that got one have ended"
    );
    assert_eq!(suspended(runtime).await, count - messages, "the others wait");
    times.sort_by(f64::total_cmp);
    print(json!({
        "bench": "W2", "part": "deliver", "store": "sqlite", "policy": "activity", "in_flight": CLIENTS,
        "parked": count, "messages": messages,
        "per_s": (messages as f64 / elapsed).round(),
        "published_per_s": (messages as f64 / published).round(),
        "p50_ms": rounded(percentile(&times, 0.5)),
        "p99_ms": rounded(percentile(&times, 0.99)),
        "cpu_ms_per_message": rounded(cpu / messages.max(1) as f64),
        "resident_mb": rounded(resident_bytes() as f64 / 1e6),
        "lost": 0, "twice": 0,
    }));
}

/// A new runtime on the same file, until it has answered new work.
async fn restart(folder: &std::path::Path, parked: u64) {
    let began = Instant::now();
    let runtime = setting::start(folder, CommitPolicy::Activity).await;
    let started_ms = began.elapsed().as_secs_f64() * 1e3;
    park(runtime.clone(), u64::MAX).await;
    let accepts_ms = began.elapsed().as_secs_f64() * 1e3;
    assert_eq!(
        suspended(&runtime).await,
        parked + 1,
        "all of them are still parked"
    );
    print(json!({
        "bench": "W2", "part": "restart", "store": "sqlite", "parked": parked,
        "started_ms": rounded(started_ms),
        "first_answer_ms": rounded(accepts_ms),
        "resident_mb": rounded(resident_bytes() as f64 / 1e6),
    }));
    runtime.drain(DrainTrigger::HostStopSignal).await;
    runtime.close().await;
}

async fn park(runtime: Runtime, n: u64) {
    let variables = Variables::parse(&format!(r#"{{"key": "k{n}"}}"#)).expect("valid JSON");
    let request = StartRequest::latest("waits").variables(variables);
    runtime.start(request).await.expect("the start is taken");
}

fn message(correlation_key: String) -> MessageRequest {
    MessageRequest {
        name: "go".to_owned(),
        correlation_key,
        variables: Variables::new(),
        ttl: None,
        message_id: None,
        tenant: None,
        actor: "bench".to_owned(),
        source: None,
    }
}

/// Does `work` for every number, by clients that each do one after the other.
async fn by_clients<T, F>(
    runtime: &Runtime,
    numbers: std::ops::Range<u64>,
    work: impl Fn(Runtime, u64) -> F + Clone + Send + 'static,
) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send,
{
    let mut clients = Vec::new();
    for client in 0..CLIENTS {
        let (runtime, numbers, work) = (runtime.clone(), numbers.clone(), work.clone());
        clients.push(tokio::spawn(async move {
            let mut all = Vec::new();
            for n in numbers.skip(client as usize).step_by(CLIENTS as usize) {
                all.push(work(runtime.clone(), n).await);
            }
            all
        }));
    }
    let mut all = Vec::new();
    for client in clients {
        all.extend(client.await.expect("a client runs to its end"));
    }
    all
}

async fn counts(runtime: &Runtime) -> [u64; 9] {
    runtime.counts().await.expect("the instances can be counted")
}

async fn suspended(runtime: &Runtime) -> u64 {
    counts(runtime).await[usize::from(SubStatus::Suspended.code())]
}

async fn finished(runtime: &Runtime) -> u64 {
    counts(runtime).await[usize::from(SubStatus::Finished.code())]
}
