//! The inclusive gateway: waits until nothing more can come to its incoming flows, then takes every outgoing flow whose
//! condition holds, or else the default flow.

use tidegate_model::{ElementIndex, ElementInstanceKey};

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::definition::FlowIndex;
use crate::element::{Active, Behaviour, Shape};
use crate::reach::nothing_more_comes;
use crate::state::Scope;
use crate::text::Failure;

#[derive(Debug)]
struct InclusiveGateway;

pub(super) fn read(_: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    Some(Box::new(InclusiveGateway))
}

impl Behaviour for InclusiveGateway {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        turn.then(Step::Complete(me.key));
        Ok(())
    }

    fn leave(&self, turn: &Turn<'_>, me: &Active<'_>) -> Result<Vec<FlowIndex>, Box<Failure>> {
        let mut taken = Vec::with_capacity(me.info.outgoing.len());
        for &flow in &me.info.outgoing {
            if me.info.default != Some(flow) && turn.holds(me, flow)? {
                taken.push(flow);
            }
        }
        match me.info.default {
            Some(default) if taken.is_empty() => Ok(vec![default]),
            None if taken.is_empty() && !me.info.outgoing.is_empty() => Err(turn.no_flow(me)),
            Some(_) | None => Ok(taken),
        }
    }

    fn is_ready(
        &self,
        turn: &Turn<'_>,
        _: ElementInstanceKey,
        scope: &Scope,
        gateway: ElementIndex,
    ) -> Result<bool, Box<Failure>> {
        Ok(nothing_more_comes(
            turn.definition,
            turn.instance,
            scope,
            gateway,
            &[],
        ))
    }

    fn shape(&self) -> Shape {
        Shape::Late
    }
}
