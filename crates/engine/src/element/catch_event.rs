//! Intermediate catch events: timer and message.

use crate::compile::Reader;
use crate::decide::Turn;
use crate::element::{Active, Behaviour, Trigger};
use crate::text::Failure;

#[derive(Debug)]
struct CatchEvent {
    trigger: Trigger,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    match reader.event_definitions().as_slice() {
        [] => reader.refuse(
            "event-definition-missing",
            "a catch event must say what it waits for",
            "add a timer or message event definition",
        ),
        [definition] => {
            let trigger = reader.trigger(definition)?;
            Some(Box::new(CatchEvent { trigger }))
        }
        definitions => reader.unsupported_event(definitions),
    }
}

impl Behaviour for CatchEvent {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        self.trigger.arm(turn, me, me.element)
    }

    fn trigger(&self) -> Option<&Trigger> {
        Some(&self.trigger)
    }
}
