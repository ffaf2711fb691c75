//! The parallel gateway: waits for one token on each incoming flow, then takes every outgoing flow.

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::definition::FlowIndex;
use crate::element::{Active, Behaviour, Shape};
use crate::text::Failure;

#[derive(Debug)]
struct ParallelGateway;

pub(super) fn read(_: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    Some(Box::new(ParallelGateway))
}

impl Behaviour for ParallelGateway {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        turn.then(Step::Complete(me.key));
        Ok(())
    }

    /// Conditions on its flows have no meaning.
    fn leave(&self, _: &Turn<'_>, me: &Active<'_>) -> Result<Vec<FlowIndex>, Box<Failure>> {
        Ok(me.info.outgoing.clone())
    }

    fn shape(&self) -> Shape {
        Shape::Join
    }
}
