//! Message events and receive tasks: how a message is read and subscribed to.

use tidegate_model::ElementIndex;
use tidegate_model::document::{Namespace, NodeId};

use crate::compile::Reader;
use crate::decide::Turn;
use crate::element::{Waiter, correlation};
use crate::event::Event;
use crate::text::{Computed, Failure, Text};
use crate::visible::Visible;

/// A message that is waited for.
#[derive(Debug)]
pub(crate) struct MessageSpec {
    pub(crate) name: Text,
    /// None in a model of the plain standard: every message of the name fits.
    correlation_key: Option<Text>,
    /// What the standard's correlation properties read from the data of the instance.
    properties: Vec<Computed>,
}

/// Reads the message that `holder`, a message event definition or a receive task, refers to.
pub(crate) fn read(reader: &mut Reader<'_>, holder: NodeId) -> Option<MessageSpec> {
    let document = reader.document;
    let Some(reference) = document.get(holder).attribute("messageRef") else {
        return reader.refuse(
            "message-reference-missing",
            "it must say which message it means",
            "set messageRef to a `message` element",
        );
    };
    let found = document.by_id(reference).map(|node| document.get(node));
    let Some(message) = found.filter(|element| element.tag == "message") else {
        let position = document.get(holder).attribute_position("messageRef");
        return reader.refuse_at(
            position,
            "dangling-reference",
            &format!("there is no message `{reference}`"),
            "set messageRef to the id of a `message` element",
        );
    };
    let Some(name) = message
        .name()
        .or(message.id())
        .filter(|name| !name.trim().is_empty())
    else {
        return reader.refuse_at(
            message.position,
            "message-name-missing",
            "the message has no name",
            "name it",
        );
    };
    let name = reader.text(name, message.attribute_position("name"))?;
    let subscription = message.extension(&Namespace::Zeebe, "subscription");
    let correlation_key = match subscription.and_then(|extension| extension.attribute("correlationKey")) {
        Some(text) => Some(reader.text(text, message.position)?),
        None => None,
    };
    let properties = match correlation_key {
        Some(_) => Vec::new(),
        None => correlation::subscribed(reader, reference)?,
    };
    Some(MessageSpec {
        name,
        correlation_key,
        properties,
    })
}

/// Subscribes `owner` to the message for `element`.
pub(super) fn subscribe(
    message: &MessageSpec,
    turn: &mut Turn<'_>,
    waiter: &Waiter<'_>,
    element: ElementIndex,
) -> Result<(), Box<Failure>> {
    let scope = turn.visible(waiter.from, waiter.locals);
    let name = match &message.name {
        Text::Literal(_) => None,
        Text::Computed(_) => Some(message.name.required("the message name", &scope)?),
    };
    let correlation_key = message.correlation_key(&scope)?;
    turn.event(Event::MessageSubscribed {
        owner: waiter.owner,
        element,
        name,
        correlation_key,
    });
    Ok(())
}

impl MessageSpec {
    pub(super) fn correlation_key(&self, scope: &Visible<'_>) -> Result<String, Box<Failure>> {
        match &self.correlation_key {
            None => correlation::key(&self.properties, scope),
            Some(Text::Literal(text)) => Ok(text.to_string()),
            Some(key @ Text::Computed(_)) => key.required("the correlation key", scope),
        }
    }
}
