//! The receive task: an activity that waits for a message.

use crate::compile::Reader;
use crate::decide::Turn;
use crate::element::{Active, Behaviour, Trigger, message};
use crate::text::Failure;

#[derive(Debug)]
struct ReceiveTask {
    trigger: Trigger,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    if reader.element.attribute("instantiate") == Some("true") {
        return reader.unsupported("a receive task that creates instances");
    }
    let message = message::read(reader, reader.node)?;
    Some(Box::new(ReceiveTask {
        trigger: Trigger::Message(message),
    }))
}

impl Behaviour for ReceiveTask {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        self.trigger.arm(turn, me, me.element)
    }

    fn trigger(&self) -> Option<&Trigger> {
        Some(&self.trigger)
    }
}
