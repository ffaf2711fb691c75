//! Measures the hot path: start, ten service tasks, end; and the sizes of what is stored on the way.

use std::time::Instant;

use tidegate_engine::{CompileOptions, Instance, advance, compile, encode_events};
use tidegate_model::{Cause, Command, CommandKind, Effect, InstanceKey, KeyGenerator, Timestamp, Variables};

const TASKS: usize = 10;
const ROUNDS: usize = 20_000;

fn main() {
    let parsed = tidegate_bpmn::parse("pace.bpmn", model().as_bytes(), &tidegate_bpmn::Limits::default());
    let document = parsed.document.expect("the model can be read");
    let compiled = compile(&document, &CompileOptions::default());
    let definition = compiled.definitions.first().expect("the model compiles");
    let mut keys = KeyGenerator::new(0, 0);
    let now = Timestamp::from_ms(1_800_000_000_000);
    keys.observe(now);
    let variables = Variables::parse(r#"{"orderId":"o-4711","amount":125.50}"#).expect("an object");
    let (mut events, mut effects) = (Vec::new(), Vec::new());
    let (mut state_bytes, mut event_bytes, mut commits) = (0, 0, 0);
    let begun = Instant::now();
    for round in 0..ROUNDS {
        let mut instance = Instance::new(InstanceKey(keys.next_key()));
        let mut next = Some(CommandKind::Start {
            element: None,
            variables: variables.clone(),
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
            if round == 0 {
                commits += 1;
                state_bytes += instance.encode().len();
                event_bytes += encode_events(&events).len();
            }
            next = effects.iter().find_map(|effect| match effect {
                Effect::RunJob(job) => Some(CommandKind::CompleteJob {
                    job: job.key,
                    variables: Variables::new(),
                }),
                _ => None,
            });
        }
        assert!(instance.ended().is_some());
    }
    let pure = begun.elapsed();
    let commands = (ROUNDS * (TASKS + 1)) as u32;
    println!("{:?} a command without encoding", pure / commands);
    println!(
        "{} bytes of state and {} bytes of events a commit",
        state_bytes / commits,
        event_bytes / commits
    );
}

fn model() -> String {
    let mut body = "<startEvent id='start'/><endEvent id='end'/>".to_owned();
    let mut last = "start".to_owned();
    for task in 0..TASKS {
        body += &format!(
            "<serviceTask id='t{task}'><extensionElements><zeebe:taskDefinition type='work'/></extensionElements>\
             </serviceTask><sequenceFlow id='f{task}' sourceRef='{last}' targetRef='t{task}'/>"
        );
        last = format!("t{task}");
    }
    format!(
        "<definitions xmlns='http://www.omg.org/spec/BPMN/20100524/MODEL' \
         xmlns:zeebe='http://camunda.org/schema/zeebe/1.0' targetNamespace='urn:pace'>\
         <process id='pace' isExecutable='true'>{body}\
         <sequenceFlow id='last' sourceRef='{last}' targetRef='end'/></process></definitions>"
    )
}
