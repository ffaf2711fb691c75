//! Boundary events: timer, message, signal, condition, error, escalation, and several at once. Armed by the activity they
//! are attached to.

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::element::{Active, Behaviour, Catch, ErrorCatch, Trigger, cancel, compensation};
use crate::text::Failure;

#[derive(Debug)]
struct BoundaryEvent {
    is_interrupting: bool,
    needs_all_parts: bool,
    /// None where its parts say it.
    catch: Option<Catch>,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let definitions = reader.event_definitions();
    match definitions.as_slice() {
        [] => {
            return reader.refuse(
                "event-definition-missing",
                "a boundary event must say what it waits for",
                "add an event definition, for example of a timer, message or error",
            );
        }
        [only] if reader.tag(*only) == compensation::DEFINITION => return compensation::read_catch(),
        [only] if reader.tag(*only) == cancel::DEFINITION => return cancel::read_boundary(reader),
        _ => {}
    }
    let is_error = |definition| reader.tag(definition) == "errorEventDefinition";
    // An error always ends what it is thrown from, whatever the attribute says.
    let has_error = definitions.iter().copied().any(is_error);
    let is_interrupting = has_error || reader.element.attribute("cancelActivity") != Some("false");
    let needs_all_parts = reader.needs_all_parts(&definitions);
    let catch = reader.catch_all(&definitions, is_interrupting, false)?;
    Some(Box::new(BoundaryEvent {
        is_interrupting,
        needs_all_parts,
        catch,
    }))
}

impl Behaviour for BoundaryEvent {
    /// Only reached when its completion was stopped before it began: the event itself has already come.
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        turn.then(Step::Complete(me.key));
        Ok(())
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
