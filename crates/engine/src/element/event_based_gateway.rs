//! The event-based gateway: waits for the events behind it, and the first one decides. At the start of a process the
//! events create instances; a parallel gateway then waits for all the others too.

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::definition::FlowIndex;
use crate::element::{Active, Behaviour, Waiter};
use crate::text::Failure;

#[derive(Debug)]
struct EventBasedGateway {
    instantiates: bool,
    is_parallel: bool,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let instantiates = reader.element.attribute("instantiate") == Some("true");
    let is_parallel = reader.element.attribute("eventGatewayType") == Some("Parallel");
    if is_parallel && !instantiates {
        return reader.refuse(
            "event-gateway-parallel",
            "only an event-based gateway that creates instances can be parallel",
            "set instantiate=\"true\", or use a parallel gateway before the events",
        );
    }
    Some(Box::new(EventBasedGateway {
        instantiates,
        is_parallel,
    }))
}

impl Behaviour for EventBasedGateway {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        if self.is_parallel {
            turn.then(Step::Complete(me.key));
            return Ok(());
        }
        for &flow in &me.info.outgoing {
            let event = turn.definition.flow(flow).target;
            turn.arm(event, &Waiter::of(me), None)?;
        }
        Ok(())
    }

    fn leave(&self, _: &Turn<'_>, me: &Active<'_>) -> Result<Vec<FlowIndex>, Box<Failure>> {
        Ok(me.info.outgoing.clone())
    }

    fn instantiates(&self) -> bool {
        self.instantiates
    }

    fn needs_all_parts(&self) -> bool {
        self.is_parallel
    }
}
