//! What elements do. One file for each, one row in [`ROWS`].
//!
//! An element reads itself: its file knows what its XML means and how it is activated and left.

mod ad_hoc_sub_process;
mod boundary_event;
mod business_rule_task;
mod call_activity;
mod cancel;
mod catch;
mod catch_event;
mod compensation;
mod complex_gateway;
mod condition;
mod correlation;
mod delegate;
mod end_event;
mod escalation;
mod event_based_gateway;
mod exclusive_gateway;
mod inclusive_gateway;
mod interrupted;
mod job;
mod message;
mod parallel_gateway;
mod pass_through;
mod publish;
mod receive_task;
mod repetition;
mod script_task;
mod send_task;
mod service_task;
mod signal;
mod start_event;
mod sub_process;
mod throw_event;
mod timer;
mod unsupported;
mod user_task;

use std::fmt::Debug;

use tidegate_model::{ElementIndex, ElementInstanceKey, Timestamp, Variables};

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::definition::{ElementInfo, FlowIndex, StarterTrigger};
use crate::state::{ElementInstance, Scope};
use crate::text::{Computed, Failure};
use crate::timer::TimerSpec;
pub(crate) use call_activity::CallSpec;
pub(crate) use catch::{Catch, EventPart};
pub(crate) use condition::read as read_condition;
pub(crate) use correlation::{Correlations, MessageCorrelation};
pub(crate) use escalation::read_catch as read_escalation;
pub(crate) use interrupted::{INTERRUPTED, WhenInterrupted, read as read_interrupted};
pub(crate) use job::JobSpec;
pub(crate) use message::{MessageSpec, read as read_message};
pub(crate) use pass_through::stand_in;
pub(crate) use publish::PublishSpec;
pub(crate) use repetition::{LOOP_COUNTER, Repetition, read as read_repetition};
pub(crate) use signal::{SignalSpec, read as read_signal};
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
    row("intermediateThrowEvent", Class::Event, throw_event::read),
    row("boundaryEvent", Class::Event, boundary_event::read),
    row("exclusiveGateway", Class::Gateway, exclusive_gateway::read),
    row("parallelGateway", Class::Gateway, parallel_gateway::read),
    row("eventBasedGateway", Class::Gateway, event_based_gateway::read),
    row("inclusiveGateway", Class::Gateway, inclusive_gateway::read),
    row("complexGateway", Class::Gateway, complex_gateway::read),
    row("task", Class::Activity, pass_through::read_task),
    row("manualTask", Class::Activity, pass_through::read_task),
    row("serviceTask", Class::Activity, service_task::read),
    row("sendTask", Class::Activity, send_task::read),
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
    fn next_start(&self, after: Timestamp, fired: u32) -> Option<Timestamp> {
        match self.trigger() {
            Some(Trigger::Timer(timer)) => timer.fixed()?.next(after, fired),
            Some(Trigger::Message(_) | Trigger::Signal(_) | Trigger::Condition(_)) | None => None,
        }
    }

    /// The event that it receives, or that its host waits for on its behalf.
    fn trigger(&self) -> Option<&Trigger> {
        None
    }

    /// The work that it asks for.
    fn job(&self) -> Option<&JobSpec> {
        None
    }

    /// The error that it catches, for a boundary event or the start of an event sub-process.
    fn catches(&self) -> Option<&ErrorCatch> {
        None
    }

    /// The escalation that it catches, likewise.
    fn catches_escalation(&self) -> Option<&ErrorCatch> {
        None
    }

    /// True if it comes only when all its definitions, or all the events behind it, have come.
    fn needs_all_parts(&self) -> bool {
        false
    }

    /// True for an event sub-process.
    fn is_listener(&self) -> bool {
        false
    }

    /// True if the message it receives, or one of the events behind it, creates instances.
    fn instantiates(&self) -> bool {
        false
    }

    /// For [`Shape::Late`]: whether it can be activated, now that nothing else goes on.
    fn is_ready(
        &self,
        _turn: &Turn<'_>,
        _place: ElementInstanceKey,
        _scope: &Scope,
        _gateway: ElementIndex,
    ) -> Result<bool, Box<Failure>> {
        Ok(true)
    }

    /// For [`Shape::Late`]: true if variables can make it ready.
    fn asks_variables(&self) -> bool {
        false
    }

    /// True if it goes on waiting after its tokens have left.
    fn stays(&self, _me: &Active<'_>) -> bool {
        false
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
    /// It is asked when nothing else goes on, and takes a token from each incoming flow that has one.
    Late,
    /// Every token activates it, and it holds a scope.
    Scope,
}

/// An event that is waited for.
#[derive(Debug)]
pub(crate) enum Trigger {
    Timer(TimerSpec),
    Message(MessageSpec),
    Signal(SignalSpec),
    Condition(Computed),
}

/// Who waits, and what it sees.
pub(crate) struct Waiter<'a> {
    /// The name it waits under.
    pub(crate) owner: ElementInstanceKey,
    /// Where its expressions look for variables, `locals` first.
    pub(crate) from: ElementInstanceKey,
    pub(crate) locals: Option<&'a Variables>,
}

impl<'a> Waiter<'a> {
    pub(crate) fn of(me: &Active<'a>) -> Self {
        Self {
            owner: me.key,
            from: me.key,
            locals: Some(me.locals),
        }
    }
}

impl Trigger {
    /// Arms it for `element`.
    pub(crate) fn arm(
        &self,
        turn: &mut Turn<'_>,
        waiter: &Waiter<'_>,
        element: ElementIndex,
    ) -> Result<(), Box<Failure>> {
        match self {
            Self::Timer(timer) => timer::arm(timer, turn, waiter, element),
            Self::Message(message) => message::subscribe(message, turn, waiter, element),
            Self::Signal(signal) => signal::subscribe(signal, turn, waiter, element),
            Self::Condition(_) => {
                condition::await_it(turn, waiter, element);
                Ok(())
            }
        }
    }

    /// How it creates an instance. A condition does not: nobody looks at it while there is no instance.
    pub(crate) fn starter(&self) -> Option<StarterTrigger> {
        Some(match self {
            Self::Timer(timer) => StarterTrigger::Timer(timer.written().clone()),
            Self::Message(message) => StarterTrigger::Message(message.name.literal()?.clone()),
            Self::Signal(signal) => StarterTrigger::Signal(signal.name.literal()?.clone()),
            Self::Condition(_) => StarterTrigger::None,
        })
    }
}

/// Which errors or escalations an event catches, and what it keeps of them.
#[derive(Debug)]
pub(crate) struct ErrorCatch {
    /// The code; none catches all.
    pub(crate) code: Option<Box<str>>,
    pub(crate) code_variable: Option<Box<str>>,
    pub(crate) message_variable: Option<Box<str>>,
}
