//! Cancelling a transaction: the end event that does it, and the boundary event that goes on afterwards.
//!
//! What runs in the transaction is ended, what completed in it is compensated, also inside what was ended, and then it is
//! left.

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::definition::FlowIndex;
use crate::element::{Active, Behaviour, Shape};
use crate::event::Event;
use crate::text::Failure;

pub(crate) const DEFINITION: &str = "cancelEventDefinition";

#[derive(Debug)]
struct CancelEnd;

#[derive(Debug)]
struct CancelBoundary;

pub(super) fn read_end(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let around = reader.element.parent.map(|parent| reader.tag(parent));
    if around != Some("transaction") {
        return reader.refuse(
            "cancel-outside-transaction",
            "only a transaction can be cancelled by an end event, and this one does not stand in one",
            "move it directly into the transaction, or use an error end event",
        );
    }
    Some(Box::new(CancelEnd))
}

pub(super) fn read_boundary(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let document = reader.document;
    let host = reader
        .element
        .attribute("attachedToRef")
        .and_then(|host| document.by_id(host));
    if host.is_some_and(|host| reader.tag(host) != "transaction") {
        return reader.refuse(
            "cancel-outside-transaction",
            "a cancel boundary event can only be attached to a transaction",
            "attach it to a transaction, or use another event",
        );
    }
    Some(Box::new(CancelBoundary))
}

impl Behaviour for CancelEnd {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        turn.close_listeners(turn.instance.as_owner(me.state.parent));
        turn.abort_scope(me.state.parent, me.key);
        turn.then(Step::Next(me.key));
        Ok(())
    }

    fn next(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        if turn.compensate(me, None) {
            return Ok(());
        }
        let (instance, definition) = (turn.instance, turn.definition);
        let transaction = me.state.parent;
        let boundary = instance.elements.get(&transaction).and_then(|state| {
            let boundaries = &definition.element(state.element).boundaries;
            let boundary = boundaries
                .iter()
                .find(|boundary| definition.element(**boundary).behaviour.is_cancel());
            // The events attached to a repeated transaction belong to the whole of it.
            let host = if state.turn().is_some() {
                state.parent
            } else {
                transaction
            };
            Some((*boundary?, host, instance.elements.get(&host)?))
        });
        let Some((boundary, host, state)) = boundary else {
            turn.give_up_compensation(transaction);
            turn.then(Step::Complete(me.key));
            return Ok(());
        };
        let into = turn.spawn(boundary, state.parent);
        turn.event(Event::TransactionCancelled {
            key: host,
            element: state.element,
            into,
        });
        turn.terminate(host);
        turn.then(Step::Complete(into));
        Ok(())
    }

    fn leave(&self, _: &Turn<'_>, _: &Active<'_>) -> Result<Vec<FlowIndex>, Box<Failure>> {
        Ok(Vec::new())
    }

    fn is_watchful(&self) -> bool {
        true
    }

    fn shape(&self) -> Shape {
        Shape::Scope
    }
}

impl Behaviour for CancelBoundary {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        turn.then(Step::Complete(me.key));
        Ok(())
    }

    fn is_cancel(&self) -> bool {
        true
    }
}
