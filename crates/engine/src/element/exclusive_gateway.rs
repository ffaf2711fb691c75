//! The exclusive gateway: the first flow whose condition holds, else the default flow.

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::definition::FlowIndex;
use crate::element::{Active, Behaviour};
use crate::text::Failure;

#[derive(Debug)]
struct ExclusiveGateway;

pub(super) fn read(_: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    Some(Box::new(ExclusiveGateway))
}

impl Behaviour for ExclusiveGateway {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        turn.then(Step::Complete(me.key));
        Ok(())
    }

    fn leave(&self, turn: &Turn<'_>, me: &Active<'_>) -> Result<Vec<FlowIndex>, Box<Failure>> {
        for &flow in &me.info.outgoing {
            if me.info.default != Some(flow) && turn.holds(me, flow)? {
                return Ok(vec![flow]);
            }
        }
        match me.info.default {
            Some(default) => Ok(vec![default]),
            None if me.info.outgoing.is_empty() => Ok(Vec::new()),
            None => Err(turn.no_flow(me)),
        }
    }
}
