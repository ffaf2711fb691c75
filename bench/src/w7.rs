//! W7: what a step costs as an instance grows: steps with a large variable, turns of a loop, parallel branches. The cost of
//! a step must not grow with what has happened, and the whole must be linear in its size.

use std::time::{Duration, Instant};

use serde_json::json;
use tidegate::api::{Resource, StartRequest};
use tidegate::model::Variables;
use tidegate::status::DrainTrigger;
use tidegate::{CommitPolicy, Runtime};

use crate::measure::{cpu_ms, rounded};
use crate::setting::{self, Said, chain, flow, option, print, process, task};

/// A cost may grow by this from the middle size to the largest before it is called growing.
const MOST: f64 = 3.0;

/// How long an instance may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Options: `scale` (1.0) of all sizes, `policy` and `part` (`variable`, `history`, `loop`, `branches`, `instances`) to have
/// only one.
pub fn run(said: &Said) {
    for (policy, name) in [
        (CommitPolicy::Cycle, "cycle"),
        (CommitPolicy::Activity, "activity"),
    ] {
        if said.get("policy").is_none_or(|only| only == name) {
            setting::on_tokio(of_policy(said, policy, name));
        }
    }
}

/// What is measured: a process of a size, and what a step of it is.
struct Part {
    name: &'static str,
    sizes: [usize; 3],
    unit: &'static str,
    make: fn(usize) -> (Resource, String),
    /// Steps of an instance of this size.
    steps: fn(usize) -> usize,
    /// What the cost of a step may be proportional to.
    per: fn(usize) -> f64,
}

const PARTS: [Part; 5] = [
    Part {
        name: "variable",
        sizes: [10_000, 100_000, 1_000_000],
        unit: "bytes",
        make: |bytes| (chain("p", "demo.noop", 10), filled(bytes)),
        steps: |_| 10,
        per: |bytes| bytes as f64,
    },
    Part {
        name: "history",
        sizes: [10, 100, 1_000],
        unit: "tasks beside a variable of 1 MB",
        make: |tasks| (chain("p", "demo.noop", tasks), filled(1_000_000)),
        steps: |tasks| tasks,
        per: |_| 1.0,
    },
    Part {
        name: "loop",
        sizes: [100, 1_000, 10_000],
        unit: "turns",
        make: |turns| (loops(), format!(r#"{{"i": 0, "turns": {turns}}}"#)),
        steps: |turns| turns,
        per: |_| 1.0,
    },
    Part {
        name: "branches",
        sizes: [100, 1_000, 10_000],
        unit: "branches of a gateway",
        make: |branches| (gateway(branches), "{}".to_owned()),
        steps: |branches| branches,
        per: |_| 1.0,
    },
    Part {
        name: "instances",
        sizes: [100, 1_000, 10_000],
        unit: "parallel instances of a task",
        make: |turns| (many(turns), "{}".to_owned()),
        steps: |turns| turns,
        per: |_| 1.0,
    },
];

fn filled(bytes: usize) -> String {
    format!(r#"{{"large": "{}"}}"#, "x".repeat(bytes))
}

fn loops() -> Resource {
    let body = [
        r#"<startEvent id="start"/><endEvent id="end"/><exclusiveGateway id="again"/><exclusiveGateway id="more" default="more-end"/>"#.to_owned(),
        task("work", "demo.noop"),
        r#"<scriptTask id="count"><extensionElements><z:script expression="=i + 1" resultVariable="i"/></extensionElements></scriptTask>"#.to_owned(),
        flow("start", "again"),
        flow("again", "work"),
        flow("work", "count"),
        flow("count", "more"),
        r#"<sequenceFlow id="more-again" sourceRef="more" targetRef="again"><conditionExpression xsi:type="tFormalExpression">=i &lt; turns</conditionExpression></sequenceFlow>"#.to_owned(),
        flow("more", "end"),
    ];
    process("p", "", &body.concat())
}

fn gateway(branches: usize) -> Resource {
    let mut body = [
        r#"<startEvent id="start"/><endEvent id="end"/><parallelGateway id="fork"/><parallelGateway id="join"/>"#,
        &flow("start", "fork"),
        &flow("join", "end"),
    ]
    .concat();
    for n in 0..branches {
        let name = format!("b{n}");
        body.push_str(&task(&name, "demo.noop"));
        body.push_str(&flow("fork", &name));
        body.push_str(&flow(&name, "join"));
    }
    process("p", "", &body)
}

fn many(turns: usize) -> Resource {
    let turns = format!(
        "<multiInstanceLoopCharacteristics><loopCardinality>{turns}</loopCardinality></multiInstanceLoopCharacteristics></serviceTask>"
    );
    let body = [
        r#"<startEvent id="start"/><endEvent id="end"/>"#.to_owned(),
        task("work", "demo.noop").replace("</serviceTask>", &turns),
        flow("start", "work"),
        flow("work", "end"),
    ];
    process("p", "", &body.concat())
}

async fn of_policy(said: &Said, policy: CommitPolicy, name: &str) {
    let scale: f64 = option(said, "scale", 1.0);
    for part in &PARTS {
        if said.get("part").is_some_and(|only| only != part.name) {
            continue;
        }
        let mut costs = Vec::new();
        for size in part.sizes {
            let size = ((size as f64 * scale) as usize).max(2);
            let folder = tempfile::tempdir().expect("a temporary folder can be made");
            let runtime = setting::start(folder.path(), policy).await;
            let (file, variables) = (part.make)(size);
            runtime
                .deploy(vec![file], None, "bench")
                .await
                .expect("the process deploys");
            let variables = Variables::parse(&variables).expect("valid JSON");
            let steps = (part.steps)(size);
            let repeats = (2_000 / steps).clamp(1, 50);
            // The first one warms up.
            go(&runtime, &variables).await;
            let (began, cpu) = (Instant::now(), cpu_ms());
            for _ in 0..repeats {
                go(&runtime, &variables).await;
            }
            let all = (steps * repeats) as f64;
            let (wall, cpu) = (began.elapsed().as_secs_f64() * 1e6, (cpu_ms() - cpu) * 1e3);
            let file = std::fs::metadata(folder.path().join("bench.db")).map_or(0, |file| file.len());
            print(json!({
                "bench": "W7", "part": part.name, "store": "sqlite", "policy": name,
                "size": size, "unit": part.unit, "steps": steps, "instances": repeats,
                "us_per_step": rounded(wall / all),
                "cpu_us_per_step": rounded(cpu / all),
                "file_mb": rounded(file as f64 / 1e6),
            }));
            costs.push(cpu / all / (part.per)(size));
            runtime.drain(DrainTrigger::HostStopSignal).await;
            runtime.close().await;
        }
        let growth = costs[2] / costs[1];
        print(json!({
            "bench": "W7", "part": part.name, "policy": name,
            "cost_at_the_largest_to_the_middle": rounded(growth),
        }));
        assert!(growth < MOST, "the cost of a step grows: {costs:?}");
    }
}

async fn go(runtime: &Runtime, variables: &Variables) {
    let request = StartRequest::latest("p")
        .variables(variables.clone())
        .wait(PATIENCE);
    let ended = runtime.start(request).await.expect("the start is taken");
    assert!(ended.sub_status.is_finished(), "it ends: {:?}", ended.sub_status);
}
