//! Signal events: how a signal is read, subscribed to and thrown.

use std::sync::Arc;

use tidegate_model::ElementIndex;
use tidegate_model::document::NodeId;

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::element::{Active, Waiter};
use crate::event::Event;
use crate::text::{Failure, Text};

/// A signal of a model.
#[derive(Debug)]
pub(crate) struct SignalSpec {
    pub(crate) name: Text,
}

/// Reads the signal that a `signalEventDefinition` refers to.
pub(crate) fn read(reader: &mut Reader<'_>, definition: NodeId) -> Option<SignalSpec> {
    let signal = reader.referred(definition, "signalRef", "signal")?;
    let Some(signal) = signal else {
        return reader.refuse(
            "signal-reference-missing",
            "it must say which signal it means",
            "set signalRef to a `signal` element",
        );
    };
    let name = signal.name().or(signal.id()).unwrap_or_default();
    let name = reader.text(name, signal.attribute_position("name"))?;
    Some(SignalSpec { name })
}

/// Subscribes to the signal for `element`.
pub(super) fn subscribe(
    signal: &SignalSpec,
    turn: &mut Turn<'_>,
    waiter: &Waiter<'_>,
    element: ElementIndex,
) -> Result<(), Box<Failure>> {
    let name = match &signal.name {
        Text::Literal(_) => None,
        Text::Computed(_) => {
            let scope = turn.visible(waiter.from, waiter.locals);
            Some(signal.name.required("the signal name", &scope)?)
        }
    };
    turn.event(Event::SignalSubscribed {
        owner: waiter.owner,
        element,
        name,
    });
    Ok(())
}

/// Throws the signal: in this instance at once, in others after the commit.
pub(super) fn throw(signal: &SignalSpec, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
    let scope = turn.visible(me.key, Some(me.locals));
    let name: Arc<str> = signal.name.required("the signal name", &scope)?.into();
    let variables = me.locals.clone();
    turn.event(Event::SignalThrown {
        key: me.key,
        element: me.element,
        name: name.to_string(),
        variables: variables.clone(),
    });
    turn.then(Step::Signal { name, variables });
    Ok(())
}
