//! Elements that take no time: the untyped task, the manual task, the none throw event, links.

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::element::{Active, Behaviour};
use crate::text::Failure;

#[derive(Debug)]
pub(crate) struct PassThrough;

pub(super) fn read_task(_: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    Some(Box::new(PassThrough))
}

impl Behaviour for PassThrough {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        turn.then(Step::Complete(me.key));
        Ok(())
    }
}

/// An event that only passes its token on.
pub(super) fn placeholder() -> Box<dyn Behaviour> {
    Box::new(PassThrough)
}

/// Stands in for an element that was refused, so that the rest of its process can be checked.
#[derive(Debug)]
struct StandIn {
    is_listener: bool,
}

/// What stands in for an element that was refused; for an event sub-process where `is_listener`.
pub(crate) fn stand_in(is_listener: bool) -> Box<dyn Behaviour> {
    Box::new(StandIn { is_listener })
}

impl Behaviour for StandIn {
    fn activate(&self, _: &mut Turn<'_>, _: &Active<'_>) -> Result<(), Box<Failure>> {
        Ok(())
    }

    fn is_listener(&self) -> bool {
        self.is_listener
    }
}
