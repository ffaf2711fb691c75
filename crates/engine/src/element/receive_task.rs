//! The receive task: an activity that waits for a message, or whose message creates the instance.

use crate::compile::Reader;
use crate::decide::Turn;
use crate::definition::StarterTrigger;
use crate::element::{Active, Behaviour, Trigger, Waiter, message};
use crate::text::Failure;

#[derive(Debug)]
struct ReceiveTask {
    instantiates: bool,
    trigger: Trigger,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let instantiates = reader.element.attribute("instantiate") == Some("true");
    let message = message::read(reader, reader.node)?;
    Some(Box::new(ReceiveTask {
        instantiates,
        trigger: Trigger::Message(message),
    }))
}

impl Behaviour for ReceiveTask {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        turn.arm(me.element, &Waiter::of(me), None)
    }

    fn starter(&self) -> Option<StarterTrigger> {
        self.trigger.starter().filter(|_| self.instantiates)
    }

    fn instantiates(&self) -> bool {
        self.instantiates
    }

    fn trigger(&self) -> Option<&Trigger> {
        Some(&self.trigger)
    }
}
