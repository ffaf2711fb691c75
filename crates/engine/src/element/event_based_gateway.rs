//! The event-based gateway: waits for the events behind it, and the first one decides.

use crate::compile::Reader;
use crate::decide::Turn;
use crate::element::{Active, Behaviour};
use crate::text::Failure;

#[derive(Debug)]
struct EventBasedGateway;

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    if reader.element.attribute("instantiate") == Some("true") {
        return reader.unsupported("an event-based gateway that creates instances");
    }
    if reader.element.attribute("eventGatewayType") == Some("Parallel") {
        return reader.unsupported("a parallel event-based gateway");
    }
    Some(Box::new(EventBasedGateway))
}

impl Behaviour for EventBasedGateway {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        let definition = turn.definition;
        for &flow in &me.info.outgoing {
            let event = definition.flow(flow).target;
            if let Some(trigger) = turn.trigger(event) {
                trigger.arm(turn, me, event)?;
            }
        }
        Ok(())
    }
}
