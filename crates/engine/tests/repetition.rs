//! Many turns: the cost of each stays the same, and nothing of it is kept.

mod common;
#[path = "common/cost.rs"]
mod cost;

use std::sync::Arc;

use common::{errors, load};
use tidegate_engine::{Definition, Instance, advance, encode_events};
use tidegate_model::{
    Cause, Command, CommandKind, Effect, InstanceKey, KeyGenerator, SubStatus, Timestamp, Variables,
};

const TURNS: usize = 10_000;

/// An instance without the checks of the usual host, which look at the whole state at each command.
struct Plain {
    definition: Arc<Definition>,
    instance: Instance,
    keys: KeyGenerator,
    jobs: Vec<CommandKind>,
    events: usize,
    event_bytes: usize,
}

impl Plain {
    fn new(loop_characteristics: &str, activity: &str) -> Self {
        let xml = format!(
            "<definitions xmlns='http://www.omg.org/spec/BPMN/20100524/MODEL' \
             xmlns:zeebe='http://camunda.org/schema/zeebe/1.0' targetNamespace='urn:many'>\
             <process id='many' isExecutable='true'><startEvent id='s'/><endEvent id='e'/>\
             <{activity} id='work'><extensionElements><zeebe:taskDefinition type='work'/></extensionElements>\
             {loop_characteristics}</{activity}><sequenceFlow id='a' sourceRef='s' targetRef='work'/>\
             <sequenceFlow id='b' sourceRef='work' targetRef='e'/></process></definitions>"
        );
        Self::read(&xml)
    }

    fn read(xml: &str) -> Self {
        let compiled = load("many.bpmn", xml.as_bytes(), &[]);
        assert!(
            errors(&compiled.diagnostics).is_empty(),
            "{:?}",
            compiled.diagnostics
        );
        let mut keys = KeyGenerator::new(0, 0);
        let instance = Instance::new(InstanceKey(keys.next_key()));
        Self {
            definition: Arc::clone(&compiled.definitions[0]),
            instance,
            keys,
            jobs: Vec::new(),
            events: 0,
            event_bytes: 0,
        }
    }

    fn command(&mut self, kind: CommandKind) {
        let (mut events, mut effects) = (Vec::new(), Vec::new());
        let command = Command::new(kind, Cause::Engine);
        let (definition, instance) = (&self.definition, &mut self.instance);
        let now = Timestamp::from_ms(1_800_000_000_000);
        advance(
            definition,
            instance,
            command,
            now,
            &mut self.keys,
            &mut events,
            &mut effects,
        )
        .unwrap();
        self.events += events.len();
        self.event_bytes += encode_events(&events).len();
        for effect in effects {
            if let Effect::RunJob(job) = effect {
                self.jobs.push(CommandKind::CompleteJob {
                    job: job.key,
                    variables: Variables::parse("{\"n\":1}").unwrap(),
                });
            }
        }
    }

    fn start(&mut self, variables: &str) {
        let variables = Variables::parse(variables).unwrap();
        self.command(CommandKind::Start {
            element: None,
            variables,
        });
    }
}

#[test]
fn each_of_ten_thousand_instances_at_once_costs_the_same() {
    let begin = |instances: usize| {
        let items: Vec<String> = (0..instances).map(|n| n.to_string()).collect();
        let run = Plain::new(
            "<multiInstanceLoopCharacteristics><extensionElements><zeebe:loopCharacteristics \
             inputCollection='= items' inputElement='item' outputCollection='all' outputElement='= item + 1'/>\
             </extensionElements></multiInstanceLoopCharacteristics>",
            "serviceTask",
        );
        (run, format!("{{\"items\":[{}]}}", items.join(",")))
    };
    cost::grows_in_proportion(
        "instances at once",
        TURNS / 4,
        begin,
        |(mut run, variables), instances| {
            run.start(&variables);
            assert_eq!(run.jobs.len(), instances);
            for job in std::mem::take(&mut run.jobs) {
                run.command(job);
            }
            assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
            let all = run.instance.variables().get("all").unwrap().to_value();
            let all = all.as_array().unwrap();
            let last = all[instances - 1].as_u64();
            assert_eq!((all.len(), last), (instances, Some(instances as u64)));
        },
    );
}

#[test]
fn ten_thousand_turns_of_a_loop_with_a_worker() {
    let mut run = Plain::new(
        "<standardLoopCharacteristics loopMaximum='10000'><loopCondition>= n = 1</loopCondition>\
         </standardLoopCharacteristics>",
        "serviceTask",
    );
    run.start("{\"n\":0}");
    let mut sizes = Vec::new();
    while let Some(job) = run.jobs.pop() {
        sizes.push(run.instance.encode().len());
        let before = run.events;
        run.command(job);
        assert!(run.events - before < 12, "a turn is a handful of events");
    }
    assert_eq!(sizes.len(), TURNS);
    assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
    let (first, last) = (sizes[0], sizes[TURNS - 1]);
    assert!(last < first + 40, "the state grew from {first} to {last} bytes");
    assert!(
        run.event_bytes / TURNS < 120,
        "{} bytes a turn",
        run.event_bytes / TURNS
    );
}

/// A loop of so many turns, each a job or each done at once.
fn turns(activity: &str) -> impl Fn(usize) -> Plain {
    move |turns| {
        Plain::new(
            &format!(
                "<standardLoopCharacteristics loopMaximum='{turns}'><loopCondition>true</loopCondition>\
                 </standardLoopCharacteristics>"
            ),
            activity,
        )
    }
}

#[test]
fn each_turn_of_a_loop_costs_the_same() {
    for activity in ["serviceTask", "task"] {
        cost::grows_in_proportion(activity, TURNS / 4, turns(activity), |mut run, turns| {
            run.start("{}");
            let mut done = 0;
            while let Some(job) = run.jobs.pop() {
                run.command(job);
                done += 1;
            }
            assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
            assert_eq!(done, if activity == "task" { 0 } else { turns });
        });
    }
}

#[test]
fn ten_thousand_turns_in_one_command() {
    let mut run = turns("task")(TURNS);
    run.start("{}");
    assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
    assert!(run.events > 2 * TURNS);
}

#[test]
fn more_branches_than_a_command_may_take_steps_are_no_endless_loop() {
    let branches: String = (0..=TURNS)
        .map(|n| {
            format!(
                "<task id='t{n}'/><sequenceFlow id='f{n}' sourceRef='fork' targetRef='t{n}'/>\
                 <sequenceFlow id='j{n}' sourceRef='t{n}' targetRef='join'/>"
            )
        })
        .collect();
    let mut run = Plain::read(&format!(
        "<definitions xmlns='http://www.omg.org/spec/BPMN/20100524/MODEL' targetNamespace='urn:many'>\
         <process id='many' isExecutable='true'><startEvent id='s'/><endEvent id='e'/>\
         <parallelGateway id='fork'/><parallelGateway id='join'/>{branches}\
         <sequenceFlow id='a' sourceRef='s' targetRef='fork'/>\
         <sequenceFlow id='b' sourceRef='join' targetRef='e'/></process></definitions>"
    ));
    run.start("{}");
    assert_eq!(run.instance.incidents().len(), 0);
    assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
}

#[test]
fn a_loop_without_an_end_is_stopped() {
    let mut run = Plain::new(
        "<standardLoopCharacteristics><loopCondition>true</loopCondition></standardLoopCharacteristics>",
        "task",
    );
    run.start("{}");
    let codes: Vec<&str> = run
        .instance
        .incidents()
        .map(|(_, incident)| incident.code.as_str())
        .collect();
    assert_eq!(codes, ["too-many-steps"]);
}
