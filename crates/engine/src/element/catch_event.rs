//! Intermediate catch events: timer, message, signal, condition, link, and several at once.

use crate::compile::Reader;
use crate::decide::Turn;
use crate::element::{Active, Behaviour, Catch, Trigger, Waiter, pass_through};
use crate::text::Failure;

#[derive(Debug)]
struct CatchEvent {
    needs_all_parts: bool,
    /// None where its parts say it.
    catch: Option<Catch>,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let definitions = reader.event_definitions();
    match definitions.as_slice() {
        [] => reader.refuse(
            "event-definition-missing",
            "a catch event must say what it waits for",
            "add an event definition, for example of a timer or message",
        ),
        // The way here is a flow that `compile` makes.
        [link] if reader.tag(*link) == "linkEventDefinition" => Some(pass_through::placeholder()),
        [only]
            if matches!(
                reader.tag(*only),
                "errorEventDefinition" | "escalationEventDefinition"
            ) =>
        {
            reader.refuse(
                "event-definition-misplaced",
                "errors and escalations are caught at the border of an activity or by an event sub-process",
                "attach the event to the activity that throws",
            )
        }
        _ => {
            let needs_all_parts = reader.needs_all_parts(&definitions);
            let catch = reader.catch_all(&definitions, true, false)?;
            Some(Box::new(CatchEvent {
                needs_all_parts,
                catch,
            }))
        }
    }
}

impl Behaviour for CatchEvent {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        turn.arm(me.element, &Waiter::of(me), None)
    }

    fn trigger(&self) -> Option<&Trigger> {
        self.catch.as_ref()?.trigger()
    }

    fn needs_all_parts(&self) -> bool {
        self.needs_all_parts
    }
}
