//! Decide and apply: a process of ten service tasks from its start to its end.

use std::hint::black_box;
use std::sync::Arc;

use tidegate_engine::{Definition, Event, Instance, advance};
use tidegate_model::{Cause, Command, CommandKind, Effect, InstanceKey, KeyGenerator, Timestamp, Variables};

use crate::compile;

pub fn run(rounds: u64) {
    let definition = ten_tasks();
    for _ in 0..rounds {
        black_box(execute(&definition, |_| {}));
    }
}

/// Start, ten service tasks, end.
pub fn ten_tasks() -> Arc<Definition> {
    compile::definition(&compile::chain(10, compile::service))
}

/// Runs one instance to its end, and shows the events of each commit.
pub fn execute(definition: &Definition, mut committed: impl FnMut(&[Event])) -> Instance {
    let now = Timestamp::from_ms(1_800_000_000_000);
    let mut keys = KeyGenerator::new(0, 0);
    keys.observe(now);
    let variables = Variables::parse(r#"{"orderId":"o-4711","amount":125.50}"#).expect("an object");
    let mut instance = Instance::new(InstanceKey(keys.next_key()));
    let (mut events, mut effects) = (Vec::new(), Vec::new());
    let mut next = Some(CommandKind::Start {
        element: None,
        variables,
    });
    while let Some(kind) = next.take() {
        events.clear();
        effects.clear();
        let command = Command::new(kind, Cause::Engine);
        advance(
            definition,
            &mut instance,
            command,
            now,
            &mut keys,
            &mut events,
            &mut effects,
        )
        .expect("the command fits");
        committed(&events);
        next = effects.iter().find_map(|effect| match effect {
            Effect::RunJob(job) => Some(CommandKind::CompleteJob {
                job: job.key,
                variables: Variables::new(),
            }),
            _ => None,
        });
    }
    assert!(instance.ended().is_some(), "the instance ends");
    instance
}
