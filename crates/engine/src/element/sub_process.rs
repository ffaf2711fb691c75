//! The embedded sub-process, and the transaction: a scope that ends when nothing lives in it any more. An event
//! sub-process is one that no flow leads to: the scope around it listens for its start.

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::element::{Active, Behaviour, Shape, compensation};
use crate::text::Failure;

#[derive(Debug)]
struct SubProcess {
    is_listener: bool,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let by_event = reader.element.attribute("triggeredByEvent") == Some("true");
    let is_listener = by_event && !compensation::begins(reader);
    Some(Box::new(SubProcess { is_listener }))
}

impl Behaviour for SubProcess {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        for &start in &me.info.starts {
            let key = turn.spawn(start, me.key);
            turn.then(Step::Activate(key));
        }
        if me.info.starts.is_empty() {
            turn.then(Step::Complete(me.key));
        }
        Ok(())
    }

    fn is_listener(&self) -> bool {
        self.is_listener
    }

    fn shape(&self) -> Shape {
        Shape::Scope
    }
}
