//! The processes of the simulation: small, and together of every kind of wait. Each can always be brought to its end.

use tidegate::api::Resource;

/// A process, and the messages that it needs to end.
#[derive(Debug)]
pub struct Model {
    /// Its process id.
    pub id: &'static str,
    /// Messages by name, to be sent in this order.
    pub messages: &'static [&'static str],
    extra: &'static str,
    body: &'static str,
}

impl Model {
    /// The file to deploy.
    pub fn resource(&self) -> Resource {
        let Self { id, extra, body, .. } = self;
        let xml = format!(
            r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
            xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="urn:sim">{extra}<process id="{id}" isExecutable="true">{body}</process></definitions>"#
        );
        Resource {
            name: format!("{id}.bpmn"),
            bytes: xml.into_bytes(),
        }
    }
}

/// The message that `talk` takes several times.
pub const TICK: &str = "tick";
/// The signal that `horn` waits for.
pub const HORN: &str = "horn";
/// The job type of external workers.
pub const EXTERNAL: &str = "sim.external";
/// The job type of handlers that take their time.
pub const WORK: &str = "sim.work";
/// The job type of handlers that an owner polls itself.
pub const QUICK: &str = "sim.quick";

macro_rules! flow {
    ($from:literal, $to:literal) => {
        concat!(
            r#"<sequenceFlow id=""#,
            $from,
            "-",
            $to,
            r#"" sourceRef=""#,
            $from,
            r#"" targetRef=""#,
            $to,
            r#""/>"#
        )
    };
}
macro_rules! task {
    ($id:literal, $job:literal) => {
        task!($id, $job, "")
    };
    ($id:literal, $job:literal, $more:expr) => {
        concat!(
            r#"<serviceTask id=""#,
            $id,
            r#""><extensionElements><zeebe:taskDefinition type=""#,
            $job,
            r#"" retries="2"/></extensionElements>"#,
            $more,
            "</serviceTask>"
        )
    };
}
macro_rules! timer {
    ($duration:literal) => {
        concat!(
            r#"<timerEventDefinition><timeDuration xsi:type="tFormalExpression">"#,
            $duration,
            "</timeDuration></timerEventDefinition>"
        )
    };
}
macro_rules! message {
    ($name:literal) => {
        concat!(
            r#"<message id="m" name=""#, $name,
            r#""><extensionElements><zeebe:subscription correlationKey="=key"/></extensionElements></message>"#
        )
    };
}
macro_rules! ends {
    () => {
        r#"<startEvent id="s"/><endEvent id="e"/>"#
    };
}
macro_rules! each {
    ($sequential:literal) => {
        concat!(
            r#"<multiInstanceLoopCharacteristics isSequential=""#, $sequential,
            r#""><extensionElements><zeebe:loopCharacteristics inputCollection="=[1,2,3]" inputElement="i"/></extensionElements></multiInstanceLoopCharacteristics>"#
        )
    };
}

/// All of them.
pub const ALL: &[Model] = &[
    Model {
        id: "straight",
        messages: &[],
        extra: "",
        body: concat!(
            ends!(),
            task!("a", "sim.quick"),
            task!("b", "sim.work"),
            flow!("s", "a"),
            flow!("a", "b"),
            flow!("b", "e")
        ),
    },
    Model {
        id: "external",
        messages: &[],
        extra: "",
        body: concat!(
            ends!(),
            task!("a", "sim.external"),
            task!("b", "sim.quick"),
            flow!("s", "a"),
            flow!("a", "b"),
            flow!("b", "e")
        ),
    },
    Model {
        id: "talk",
        messages: &[TICK, TICK, TICK],
        extra: message!("tick"),
        body: concat!(
            ends!(),
            r#"<intermediateCatchEvent id="a"><messageEventDefinition messageRef="m"/></intermediateCatchEvent>"#,
            task!("b", "sim.quick"),
            r#"<intermediateCatchEvent id="c"><messageEventDefinition messageRef="m"/></intermediateCatchEvent>"#,
            r#"<receiveTask id="d" messageRef="m"/>"#,
            flow!("s", "a"),
            flow!("a", "b"),
            flow!("b", "c"),
            flow!("c", "d"),
            flow!("d", "e")
        ),
    },
    Model {
        id: "timed",
        messages: &[],
        extra: "",
        body: concat!(
            ends!(),
            r#"<intermediateCatchEvent id="a">"#,
            timer!("PT7S"),
            "</intermediateCatchEvent>",
            task!("b", "sim.work"),
            flow!("s", "a"),
            flow!("a", "b"),
            flow!("b", "e")
        ),
    },
    Model {
        id: "guarded",
        messages: &[],
        extra: "",
        body: concat!(
            ends!(),
            task!("a", "sim.work"),
            task!("x", "sim.external"),
            r#"<boundaryEvent id="late" attachedToRef="a">"#,
            timer!("PT5S"),
            "</boundaryEvent>",
            r#"<boundaryEvent id="nudge" attachedToRef="x" cancelActivity="false">"#,
            timer!("PT3S"),
            "</boundaryEvent>",
            r#"<endEvent id="over"/>"#,
            task!("n", "sim.quick"),
            r#"<endEvent id="nudged"/>"#,
            flow!("s", "a"),
            flow!("a", "x"),
            flow!("x", "e"),
            flow!("late", "over"),
            flow!("nudge", "n"),
            flow!("n", "nudged")
        ),
    },
    Model {
        id: "fork",
        messages: &[],
        extra: "",
        body: concat!(
            ends!(),
            r#"<parallelGateway id="split"/><parallelGateway id="join"/>"#,
            task!("a", "sim.work"),
            task!("b", "sim.external"),
            task!("c", "sim.quick"),
            flow!("s", "split"),
            flow!("split", "a"),
            flow!("split", "b"),
            flow!("split", "c"),
            flow!("a", "join"),
            flow!("b", "join"),
            flow!("c", "join"),
            flow!("join", "e")
        ),
    },
    Model {
        id: "many",
        messages: &[],
        extra: "",
        body: concat!(
            ends!(),
            task!("a", "sim.work", each!("false")),
            task!("b", "sim.quick", each!("true")),
            flow!("s", "a"),
            flow!("a", "b"),
            flow!("b", "e")
        ),
    },
    Model {
        id: "caller",
        messages: &[],
        extra: "",
        body: concat!(
            ends!(),
            r#"<callActivity id="c"><extensionElements><zeebe:calledElement processId="timed" propagateAllChildVariables="false"/></extensionElements></callActivity>"#,
            flow!("s", "c"),
            flow!("c", "e")
        ),
    },
    Model {
        id: "inner",
        messages: &[],
        extra: "",
        body: concat!(
            ends!(),
            r#"<subProcess id="sub"><startEvent id="s1"/><endEvent id="e1"/>"#,
            task!("a", "sim.quick"),
            r#"<userTask id="ask"/>"#,
            flow!("s1", "a"),
            flow!("a", "ask"),
            flow!("ask", "e1"),
            "</subProcess>",
            flow!("s", "sub"),
            flow!("sub", "e")
        ),
    },
    Model {
        id: "horn",
        messages: &[],
        extra: r#"<signal id="h" name="horn"/>"#,
        body: concat!(
            ends!(),
            r#"<intermediateCatchEvent id="a"><signalEventDefinition signalRef="h"/></intermediateCatchEvent>"#,
            flow!("s", "a"),
            flow!("a", "e")
        ),
    },
    Model {
        id: "sender",
        messages: &[],
        extra: message!("note"),
        body: concat!(
            ends!(),
            r#"<intermediateThrowEvent id="t"><extensionElements><zeebe:publishMessage correlationKey="=key"/></extensionElements><messageEventDefinition messageRef="m"/></intermediateThrowEvent>"#,
            task!("a", "sim.quick"),
            flow!("s", "t"),
            flow!("t", "a"),
            flow!("a", "e")
        ),
    },
    Model {
        id: "alarm",
        messages: &[],
        extra: "",
        body: concat!(
            r#"<startEvent id="s"><timerEventDefinition><timeCycle xsi:type="tFormalExpression">R3/PT4S</timeCycle></timerEventDefinition></startEvent><endEvent id="e"/>"#,
            task!("a", "sim.quick"),
            flow!("s", "a"),
            flow!("a", "e")
        ),
    },
    Model {
        id: "listener",
        messages: &[],
        extra: message!("note"),
        body: concat!(
            r#"<startEvent id="s"><messageEventDefinition messageRef="m"/></startEvent><endEvent id="e"/>"#,
            task!("a", "sim.work"),
            flow!("s", "a"),
            flow!("a", "e")
        ),
    },
];

/// How often `alarm` begins by itself.
pub const ALARMS: usize = 3;

/// The processes that clients start. The others begin by a message or a timer.
pub fn startable() -> impl Iterator<Item = &'static Model> {
    ALL.iter()
        .filter(|model| !["listener", "alarm"].contains(&model.id))
}
