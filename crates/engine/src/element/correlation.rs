//! Correlation by the standard's properties: what a message says (`messagePath`), and what the process says that waits
//! for it (`dataPath`, or else the same path over its own data).

use std::sync::Arc;

use tidegate_model::document::{Document, NodeId};
use tidegate_model::{ElementInstanceKey, Variables};

use crate::compile::Reader;
use crate::state::Instance;
use crate::text::{Computed, Failure};
use crate::visible::Visible;

/// Between the values of a key of several properties.
const SEPARATOR: &str = "|";

/// How the key of a message follows from its payload.
#[derive(Debug)]
pub(crate) struct MessageCorrelation {
    pub(crate) message_name: Arc<str>,
    pub(crate) properties: Vec<Computed>,
}

/// The properties that identify a message, with the expression that reads each from its payload, in order.
fn properties(document: &Document, message: &str) -> Vec<(String, NodeId)> {
    let mut found = Vec::new();
    for (_, property) in document
        .children(document.root())
        .filter(|(_, e)| e.tag == "correlationProperty")
    {
        let retrievals = property.children.iter().map(|node| (*node, document.get(*node)));
        let retrieval = retrievals
            .filter(|(_, child)| child.tag == "correlationPropertyRetrievalExpression")
            .find(|(_, child)| child.attribute("messageRef") == Some(message));
        if let Some((retrieval, _)) = retrieval
            && let Some((path, _)) = document.child(retrieval, "messagePath")
            && let Some(id) = property.id()
        {
            found.push((id.to_owned(), path));
        }
    }
    let keys = document
        .elements
        .iter()
        .enumerate()
        .filter(|(_, element)| element.tag == "correlationKey");
    for (node, _) in keys {
        let parts = document.children(NodeId(node as u32));
        let parts: Vec<&str> = parts
            .filter(|(_, child)| child.tag == "correlationPropertyRef")
            .map(|(_, child)| child.text.trim())
            .collect();
        // A key counts where the message has all of its properties.
        let whole: Option<Vec<_>> = parts
            .iter()
            .map(|part| found.iter().find(|(id, _)| id == part).cloned())
            .collect();
        if let Some(whole) = whole.filter(|whole| !whole.is_empty()) {
            return whole;
        }
    }
    found
}

/// What the process that is read compares with the properties of the message of this id.
pub(super) fn subscribed(reader: &mut Reader<'_>, message: &str) -> Option<Vec<Computed>> {
    let document = reader.document;
    let mut process = reader.node;
    while document.get(process).tag != "process" {
        process = document.get(process).parent?;
    }
    let mut expressions = Vec::new();
    for (property, path) in properties(document, message) {
        let subscriptions = document
            .children(process)
            .filter(|(_, child)| child.tag == "correlationSubscription");
        let bindings = subscriptions.flat_map(|(node, _)| document.children(node));
        let mut bindings = bindings.filter(|(_, child)| child.tag == "correlationPropertyBinding");
        let binding =
            bindings.find(|(_, child)| child.attribute("correlationPropertyRef") == Some(&*property));
        let own = binding.and_then(|(node, _)| document.child(node, "dataPath"));
        let path = own.map_or(path, |(own, _)| own);
        let element = document.get(path);
        expressions.push(reader.expression(
            element.text.trim(),
            element.attribute("language"),
            element.position,
        )?);
    }
    Some(expressions)
}

/// How the messages of the file are identified by their payload. What cannot be read is said where it is waited for.
pub(crate) fn messages(document: &Document) -> Vec<MessageCorrelation> {
    let messages = document
        .children(document.root())
        .filter(|(_, element)| element.tag == "message");
    let correlations = messages.filter_map(|(_, message)| {
        let paths = properties(document, message.id()?);
        let read = |(_, path): &(String, NodeId)| {
            let element = document.get(*path);
            Computed::read(element.text.trim(), element.attribute("language")).ok()
        };
        let properties: Option<Vec<Computed>> = paths.iter().map(read).collect();
        Some(MessageCorrelation {
            message_name: message.name().or(message.id())?.into(),
            properties: properties.filter(|properties| !properties.is_empty())?,
        })
    });
    correlations.collect()
}

/// The key that the properties give.
pub(super) fn key(properties: &[Computed], scope: &Visible<'_>) -> Result<String, Box<Failure>> {
    let values: Result<Vec<String>, _> = properties
        .iter()
        .map(|property| {
            let value = property.string("the correlation property", scope)?;
            value.ok_or_else(|| super::message::missing("the correlation property", &property.text))
        })
        .collect();
    Ok(values?.join(SEPARATOR))
}

impl MessageCorrelation {
    /// The key of a message with this payload; none where the payload has not all of it.
    pub(crate) fn key_of(&self, payload: &Variables) -> Option<String> {
        let mut instance = Instance::new(tidegate_model::InstanceKey(0));
        instance.variables = payload.clone();
        let scope = Visible {
            instance: &instance,
            from: ElementInstanceKey::ROOT,
            front: None,
            now: tidegate_model::Timestamp::default(),
        };
        key(&self.properties, &scope).ok()
    }
}
