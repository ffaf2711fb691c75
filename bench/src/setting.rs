//! What every benchmark needs: its options, an async runtime, a runtime on a file, processes.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::{Value, json};
use tidegate::api::Resource;
use tidegate::store::sqlite::SqliteStore;
use tidegate::{Builder, CommitPolicy, Options, Runtime};

/// What was said after the name of the benchmark, as `key=value`.
pub type Said = BTreeMap<String, String>;

/// An option, else the environment variable of its name in upper case, else what is usual.
pub fn option<T: FromStr>(said: &Said, key: &str, usual: T) -> T {
    let of_environment = || std::env::var(key.to_ascii_uppercase()).ok();
    let text = said.get(key).cloned().or_else(of_environment);
    match text {
        None => usual,
        Some(text) => match text.parse() {
            Ok(value) => value,
            Err(_) => panic!("{key}={text} cannot be read"),
        },
    }
}

/// Runs `work` on an async runtime of two threads.
pub fn on_tokio<T>(work: impl Future<Output = T>) -> T {
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    tokio.expect("an async runtime can be made").block_on(work)
}

/// The store in `folder`.
pub fn store(folder: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(&folder.join("bench.db")).expect("the store opens"))
}

/// A runtime with the trial handlers on the store in `folder`.
pub async fn start(folder: &Path, policy: CommitPolicy) -> Runtime {
    start_with(folder, policy, |builder| builder).await
}

/// The same with more in its builder.
pub async fn start_with(
    folder: &Path,
    policy: CommitPolicy,
    more: impl FnOnce(Builder) -> Builder,
) -> Runtime {
    let builder = Runtime::builder()
        .store(store(folder))
        .options(Options {
            commit_policy: policy,
            ..Options::default()
        })
        .demo_activities();
    more(builder).start().await.expect("the runtime starts")
}

/// A file with one process: what stands before it (messages), and what is in it.
pub fn process(id: &str, before: &str, body: &str) -> Resource {
    let xml = format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:z="http://camunda.org/schema/zeebe/1.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" targetNamespace="urn:bench">{before}<process id="{id}" isExecutable="true">{body}</process></definitions>"#
    );
    Resource {
        name: format!("{id}.bpmn"),
        bytes: xml.into_bytes(),
    }
}

/// A service task of a job type.
pub fn task(id: &str, job_type: &str) -> String {
    format!(
        r#"<serviceTask id="{id}"><extensionElements><z:taskDefinition type="{job_type}"/></extensionElements></serviceTask>"#
    )
}

/// A sequence flow.
pub fn flow(from: &str, to: &str) -> String {
    format!(r#"<sequenceFlow id="{from}-{to}" sourceRef="{from}" targetRef="{to}"/>"#)
}

/// Start, `count` tasks of a job type one after the other, end.
pub fn chain(id: &str, job_type: &str, count: usize) -> Resource {
    let mut body = String::from(r#"<startEvent id="start"/><endEvent id="end"/>"#);
    let mut before = "start".to_owned();
    for n in 1..=count {
        let name = format!("task{n}");
        body.push_str(&task(&name, job_type));
        body.push_str(&flow(&before, &name));
        before = name;
    }
    body.push_str(&flow(&before, "end"));
    process(id, "", &body)
}

/// Prints a line, with what else the machine was doing.
pub fn print(mut line: Value) {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    line["load_of_machine"] = json!(load.split(' ').next().and_then(|text| text.parse::<f64>().ok()));
    println!("{line}");
}
