//! What elements do. One file for each, one row in [`ROWS`].
//!
//! An element reads itself: its file knows what its XML means and how it is activated and left.

mod ad_hoc_sub_process;
mod boundary_event;
mod business_rule_task;
mod call_activity;
mod cancel;
mod catch_event;
mod compensation;
mod correlation;
mod end_event;
mod event_based_gateway;
mod exclusive_gateway;
mod job;
mod message;
mod parallel_gateway;
mod pass_through;
mod receive_task;
mod repetition;
mod script_task;
mod service_task;
mod start_event;
mod sub_process;
mod timer;
mod unsupported;
mod user_task;

use std::fmt::Debug;

use tidegate_model::{ElementIndex, ElementInstanceKey, Timestamp, Variables};

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::definition::{ElementInfo, FlowIndex, StarterTrigger};
use crate::state::ElementInstance;
use crate::text::Failure;
use crate::timer::TimerSpec;
pub(crate) use call_activity::CallSpec;
pub(crate) use correlation::{MessageCorrelation, messages as message_correlations};
pub(crate) use job::JobSpec;
pub(crate) use message::{MessageSpec, read as read_message};
pub(crate) use pass_through::placeholder;
pub(crate) use repetition::{LOOP_COUNTER, Repetition, read as read_repetition};
pub(crate) use timer::read as read_timer;

/// How a tag of a flow node is read.
pub(crate) struct Row {
    pub(crate) tag: &'static str,
    pub(crate) class: Class,
    /// Reads the element; none when it was refused by a diagnostic.
    pub(crate) read: fn(&mut Reader<'_>) -> Option<Box<dyn Behaviour>>,
}

/// The three kinds of flow nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Activity,
    Event,
    Gateway,
}

const fn row(
    tag: &'static str,
    class: Class,
    read: fn(&mut Reader<'_>) -> Option<Box<dyn Behaviour>>,
) -> Row {
    Row { tag, class, read }
}

/// Every flow node that is known.
pub(crate) const ROWS: &[Row] = &[
    row("startEvent", Class::Event, start_event::read),
    row("endEvent", Class::Event, end_event::read),
    row("intermediateCatchEvent", Class::Event, catch_event::read),
    row(
        "intermediateThrowEvent",
        Class::Event,
        pass_through::read_throw_event,
    ),
    row("boundaryEvent", Class::Event, boundary_event::read),
    row("exclusiveGateway", Class::Gateway, exclusive_gateway::read),
    row("parallelGateway", Class::Gateway, parallel_gateway::read),
    row("eventBasedGateway", Class::Gateway, event_based_gateway::read),
    row("inclusiveGateway", Class::Gateway, unsupported::read),
    row("complexGateway", Class::Gateway, unsupported::read),
    row("task", Class::Activity, pass_through::read_task),
    row("manualTask", Class::Activity, pass_through::read_task),
    row("serviceTask", Class::Activity, service_task::read),
    row("sendTask", Class::Activity, service_task::read),
    row("businessRuleTask", Class::Activity, business_rule_task::read),
    row("scriptTask", Class::Activity, script_task::read),
    row("userTask", Class::Activity, user_task::read),
    row("receiveTask", Class::Activity, receive_task::read),
    row("subProcess", Class::Activity, sub_process::read),
    row("transaction", Class::Activity, sub_process::read),
    row("adHocSubProcess", Class::Activity, ad_hoc_sub_process::read),
    row("callActivity", Class::Activity, call_activity::read),
    row("subChoreography", Class::Activity, unsupported::read),
    row("choreographyTask", Class::Activity, unsupported::read),
    row("callChoreography", Class::Activity, unsupported::read),
];

/// One live element instance, as its element sees it.
pub(crate) struct Active<'a> {
    pub(crate) key: ElementInstanceKey,
    pub(crate) element: ElementIndex,
    pub(crate) info: &'a ElementInfo,
    pub(crate) state: &'a ElementInstance,
    /// Its own variables, input mappings included.
    pub(crate) locals: &'a Variables,
}

/// What an element does.
pub(crate) trait Behaviour: Debug + Send + Sync {
    /// Begins: asks for work, arms what it waits for, or goes on at once.
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>>;

    /// The flows to take when it is left.
    fn leave(&self, turn: &Turn<'_>, me: &Active<'_>) -> Result<Vec<FlowIndex>, Box<Failure>> {
        turn.split(me)
    }

    /// How it may create an instance.
    fn starter(&self) -> Option<StarterTrigger> {
        None
    }

    /// When it creates an instance by itself.
    fn next_start(&self, _after: Timestamp, _fired: u32) -> Option<Timestamp> {
        None
    }

    /// The event that it receives, or that its host waits for on its behalf.
    fn trigger(&self) -> Option<&Trigger> {
        None
    }

    /// The work that it asks for.
    fn job(&self) -> Option<&JobSpec> {
        None
    }

    /// The error that it catches, for a boundary event.
    fn catches(&self) -> Option<&ErrorCatch> {
        None
    }

    /// Something ended inside it, for an element that decides what comes next.
    fn next(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        turn.then(Step::Complete(me.key));
        Ok(())
    }

    /// True if it is asked by [`Behaviour::next`] when something ends inside it.
    fn is_watchful(&self) -> bool {
        false
    }

    /// How a call activity takes over what a child gives back.
    fn call(&self) -> Option<&CallSpec> {
        None
    }

    /// True if it is the start event of what compensates the sub-process around it, or the boundary event that leads to
    /// a compensation handler.
    fn is_compensation(&self) -> bool {
        false
    }

    /// True if it is the boundary event that goes on when a transaction was cancelled.
    fn is_cancel(&self) -> bool {
        false
    }

    /// True if the event, when it comes, ends what it is attached to.
    fn is_interrupting(&self) -> bool {
        true
    }

    /// How tokens come to it.
    fn shape(&self) -> Shape {
        Shape::Plain
    }
}

/// How tokens come to an element, and whether others live inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Every token activates it.
    Plain,
    /// One token on each incoming flow activates it.
    Join,
    /// Every token activates it, and it holds a scope.
    Scope,
}

/// An event that is waited for.
#[derive(Debug)]
pub(crate) enum Trigger {
    Timer(TimerSpec),
    Message(MessageSpec),
}

impl Trigger {
    /// Arms it on `owner` for `element`.
    pub(crate) fn arm(
        &self,
        turn: &mut Turn<'_>,
        owner: &Active<'_>,
        element: ElementIndex,
    ) -> Result<(), Box<Failure>> {
        match self {
            Self::Timer(timer) => timer::arm(timer, turn, owner, element),
            Self::Message(message) => message::subscribe(message, turn, owner, element),
        }
    }
}

/// Which errors a boundary event catches, and what it keeps of them.
#[derive(Debug)]
pub(crate) struct ErrorCatch {
    /// The code; none catches all.
    pub(crate) code: Option<Box<str>>,
    pub(crate) code_variable: Option<Box<str>>,
    pub(crate) message_variable: Option<Box<str>>,
}
