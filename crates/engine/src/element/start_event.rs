//! Start events: none, message, signal, timer, condition, and several at once. At the top of a process they create
//! instances; in an event sub-process they, and those of errors and escalations, begin it.

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::definition::StarterTrigger;
use crate::element::{Active, Behaviour, Catch, ErrorCatch, Trigger, compensation};
use crate::text::Failure;

#[derive(Debug)]
struct StartEvent {
    place: Place,
    is_interrupting: bool,
    needs_all_parts: bool,
    /// None for a none start event, and where its parts say it.
    catch: Option<Catch>,
    has_parts: bool,
}

/// Where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At the top, or in a sub-process of the flow.
    Flow,
    EventSubProcess,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let definitions = reader.event_definitions();
    let place = match reader.is_in_event_sub_process() {
        true => Place::EventSubProcess,
        false => Place::Flow,
    };
    if place == Place::EventSubProcess
        && let [only] = definitions.as_slice()
        && reader.tag(*only) == compensation::DEFINITION
    {
        return compensation::read_catch();
    }
    if place == Place::EventSubProcess && definitions.is_empty() {
        return reader.refuse(
            "event-definition-missing",
            "the start event of an event sub-process must say what begins it",
            "add an event definition, for example of a message, timer or error",
        );
    }
    if place == Place::Flow && reader.parent.is_some() && !definitions.is_empty() {
        return reader.refuse(
            "sub-process-start-not-none",
            "a sub-process in the flow cannot begin with an event",
            "remove the event definition from its start event",
        );
    }
    let has_error = definitions
        .iter()
        .any(|definition| reader.tag(*definition) == "errorEventDefinition");
    let is_interrupting = has_error || reader.element.attribute("isInterrupting") != Some("false");
    let needs_all_parts = reader.needs_all_parts(&definitions);
    let catch = match definitions.is_empty() {
        true => None,
        false => reader.catch_all(&definitions, is_interrupting, place == Place::Flow)?,
    };
    Some(Box::new(StartEvent {
        place,
        is_interrupting,
        needs_all_parts,
        catch,
        has_parts: definitions.len() > 1,
    }))
}

impl Behaviour for StartEvent {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        turn.then(Step::Complete(me.key));
        Ok(())
    }

    fn starter(&self) -> Option<StarterTrigger> {
        match (self.place, &self.catch) {
            (Place::EventSubProcess, _) => None,
            (Place::Flow, Some(catch)) => catch.trigger()?.starter(),
            (Place::Flow, None) => (!self.has_parts).then_some(StarterTrigger::None),
        }
    }

    fn trigger(&self) -> Option<&Trigger> {
        self.catch.as_ref()?.trigger()
    }

    fn catches(&self) -> Option<&ErrorCatch> {
        self.catch.as_ref()?.error()
    }

    fn catches_escalation(&self) -> Option<&ErrorCatch> {
        self.catch.as_ref()?.escalation()
    }

    fn needs_all_parts(&self) -> bool {
        self.needs_all_parts
    }

    fn is_interrupting(&self) -> bool {
        self.is_interrupting
    }
}
