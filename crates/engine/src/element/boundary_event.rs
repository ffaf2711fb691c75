//! Boundary events: timer, message, error. Armed by the activity they are attached to.

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::element::{Active, Behaviour, ErrorCatch, Trigger, cancel, compensation};
use crate::text::Failure;

#[derive(Debug)]
struct BoundaryEvent {
    is_interrupting: bool,
    catches: Catches,
}

#[derive(Debug)]
enum Catches {
    Trigger(Trigger),
    Error(ErrorCatch),
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let definitions = reader.event_definitions();
    let definition = match definitions.as_slice() {
        [] => {
            return reader.refuse(
                "event-definition-missing",
                "a boundary event must say what it waits for",
                "add a timer, message or error event definition",
            );
        }
        [definition] if reader.tag(*definition) == compensation::DEFINITION => {
            return compensation::read_catch();
        }
        [definition] if reader.tag(*definition) == cancel::DEFINITION => {
            return cancel::read_boundary(reader);
        }
        [definition] => definition,
        several => return reader.unsupported_event(several),
    };
    let is_error = reader.tag(*definition) == "errorEventDefinition";
    // An error always ends what it is thrown from, whatever the attribute says.
    let is_interrupting = is_error || reader.element.attribute("cancelActivity") != Some("false");
    let catches = match is_error {
        true => Catches::Error(reader.error_catch(*definition)?),
        false => Catches::Trigger(reader.trigger(definition)?),
    };
    Some(Box::new(BoundaryEvent {
        is_interrupting,
        catches,
    }))
}

impl Behaviour for BoundaryEvent {
    /// Only reached when its completion was stopped before it began: the event itself has already come.
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        turn.then(Step::Complete(me.key));
        Ok(())
    }

    fn trigger(&self) -> Option<&Trigger> {
        match &self.catches {
            Catches::Trigger(trigger) => Some(trigger),
            Catches::Error(_) => None,
        }
    }

    fn catches(&self) -> Option<&ErrorCatch> {
        match &self.catches {
            Catches::Error(error) => Some(error),
            Catches::Trigger(_) => None,
        }
    }

    fn is_interrupting(&self) -> bool {
        self.is_interrupting
    }
}
