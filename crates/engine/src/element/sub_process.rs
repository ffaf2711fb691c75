//! The embedded sub-process, and the transaction: a scope that ends when nothing lives in it any more.

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::element::{Active, Behaviour, Shape, compensation};
use crate::text::Failure;

#[derive(Debug)]
struct SubProcess;

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    match reader.element.attribute("triggeredByEvent") {
        Some("true") if compensation::begins(reader) => Some(Box::new(SubProcess)),
        Some("true") => reader.unsupported("an event sub-process"),
        Some(_) | None => Some(Box::new(SubProcess)),
    }
}

impl Behaviour for SubProcess {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        for &start in &me.info.starts {
            let key = turn.spawn(start, me.key);
            turn.then(Step::Activate(key));
        }
        Ok(())
    }

    fn shape(&self) -> Shape {
        Shape::Scope
    }
}
