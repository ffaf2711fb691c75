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

/// An event that only passes its token on. Also stands in for an element that was refused, so that the rest of its
/// process can be checked.
pub(crate) fn placeholder() -> Box<dyn Behaviour> {
    Box::new(PassThrough)
}
