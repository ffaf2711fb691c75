//! The models whose states and journals are fuzzed, and short runs of them for the seeds.

use std::sync::{Arc, LazyLock};

use tidegate_engine::{CompileOptions, Definition, Event, Instance, advance, compile};
use tidegate_model::{Cause, Command, CommandKind, Effect, InstanceKey, KeyGenerator, Timestamp, Variables};

/// The key that every instance here has.
pub const KEY: InstanceKey = InstanceKey(1 << 20);

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

/// Files with the elements that keep something in the state.
const FILES: &[&[u8]] = &[
    include_bytes!("../../crates/engine/tests/fixtures/behaviour.bpmn"),
    include_bytes!("../../crates/engine/tests/fixtures/compensation.bpmn"),
    include_bytes!("../../crates/engine/tests/fixtures/events.bpmn"),
    include_bytes!("../../crates/engine/tests/fixtures/gateways.bpmn"),
    include_bytes!("../../crates/engine/tests/fixtures/multi_instance.bpmn"),
    include_bytes!("../../crates/engine/tests/fixtures/user_task.bpmn"),
    include_bytes!("../../crates/engine/tests/fixtures/ad_hoc.bpmn"),
    include_bytes!("../../crates/engine/tests/fixtures/call.bpmn"),
];

static MODELS: LazyLock<Vec<Arc<Definition>>> = LazyLock::new(|| {
    let read = |file: &&[u8]| {
        let parsed = tidegate_bpmn::parse("model.bpmn", file, &tidegate_bpmn::Limits::default());
        let document = parsed.document.expect("the model can be read");
        compile(&document, &CompileOptions::default()).definitions
    };
    FILES.iter().flat_map(read).collect()
});

/// The model that the first byte chooses, and the bytes behind it.
pub fn choose(bytes: &[u8]) -> Option<(&'static Definition, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let definition = MODELS.get(usize::from(*first) % MODELS.len())?;
    Some((definition, rest))
}

/// A run of each model: its number, the events of all commits, and the state before its last commit.
pub fn runs() -> Vec<(u8, Vec<Event>, Instance)> {
    let runs = (0_u8..).zip(MODELS.iter());
    runs.filter_map(|(number, definition)| run(definition).map(|(events, state)| (number, events, state)))
        .collect()
}

/// Starts an instance and answers jobs and user tasks, at most a dozen.
fn run(definition: &Definition) -> Option<(Vec<Event>, Instance)> {
    let mut keys = KeyGenerator::new(0, KEY.get());
    let mut instance = Instance::new(KEY);
    let (mut events, mut journal, mut effects, mut before) = (Vec::new(), Vec::new(), Vec::new(), None);
    let variables = Variables::parse(r#"{"items": [1, 2, 3], "a": 1, "orderId": "o-1"}"#).ok()?;
    let mut next = Some(CommandKind::Start {
        element: None,
        variables,
    });
    let mut left = 12;
    while let Some(kind) = next.take() {
        let command = Command::new(kind, Cause::Engine);
        let answered = advance(
            definition,
            &mut instance,
            command,
            NOW,
            &mut keys,
            &mut events,
            &mut effects,
        );
        answered.ok()?;
        journal.append(&mut events);
        if instance.ended().is_none() {
            before = Some(instance.clone());
        }
        left -= 1;
        next = effects.drain(..).find_map(answer).filter(|_| left > 0);
    }
    Some((journal, before?))
}

fn answer(effect: Effect) -> Option<CommandKind> {
    match effect {
        Effect::RunJob(job) => Some(CommandKind::CompleteJob {
            job: job.key,
            variables: Variables::new(),
        }),
        _ => None,
    }
}
