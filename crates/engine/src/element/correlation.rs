//! Correlation by the standard's properties: what a message says (`messagePath`), and what the process says that waits
//! for it (`dataPath`, or else the same path over its own data).

use std::collections::HashMap;
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

/// The correlation properties of a file, gathered once.
#[derive(Debug, Default)]
pub(crate) struct Correlations {
    /// For each message, by id, the properties that identify it, with the expression that reads each from its payload.
    messages: HashMap<String, Vec<(String, NodeId)>>,
    /// For each process and property, the expression that reads it from the data of the process.
    data: HashMap<(NodeId, String), NodeId>,
}

impl Correlations {
    pub(crate) fn of(document: &Document) -> Self {
        let mut found = Self::default();
        for (node, element) in document.children(document.root()) {
            match element.tag.as_str() {
                "correlationProperty" => found.property(document, node),
                "process" => found.process(document, node),
                _ => {}
            }
        }
        if !found.messages.is_empty() {
            let keys = keys(document);
            found
                .messages
                .values_mut()
                .for_each(|properties| in_key(&keys, properties));
        }
        found
    }

    fn property(&mut self, document: &Document, property: NodeId) {
        let Some(id) = document.get(property).id() else {
            return;
        };
        for (retrieval, element) in document.children(property) {
            if element.tag == "correlationPropertyRetrievalExpression"
                && let Some(message) = element.attribute("messageRef")
                && let Some((path, _)) = document.child(retrieval, "messagePath")
            {
                let properties = self.messages.entry(message.to_owned()).or_default();
                properties.push((id.to_owned(), path));
            }
        }
    }

    fn process(&mut self, document: &Document, process: NodeId) {
        let subscriptions = document
            .children(process)
            .filter(|(_, element)| element.tag == "correlationSubscription");
        for (node, element) in subscriptions.flat_map(|(node, _)| document.children(node)) {
            if element.tag == "correlationPropertyBinding"
                && let Some(property) = element.attribute("correlationPropertyRef")
                && let Some((path, _)) = document.child(node, "dataPath")
            {
                self.data.insert((process, property.to_owned()), path);
            }
        }
    }

    /// How the messages of the file are identified by their payload. What cannot be read is said where it is waited
    /// for.
    pub(crate) fn messages(&self, document: &Document) -> Vec<MessageCorrelation> {
        let mut ids: Vec<&String> = self.messages.keys().collect();
        ids.sort();
        let correlations = ids.into_iter().filter_map(|id| {
            let message = document.get(document.by_id(id)?);
            let read = |(_, path): &(String, NodeId)| {
                let element = document.get(*path);
                Computed::read(element.text.trim(), element.attribute("language")).ok()
            };
            let properties: Option<Vec<Computed>> = self.messages.get(id)?.iter().map(read).collect();
            Some(MessageCorrelation {
                message_name: message.name().or(message.id())?.into(),
                properties: properties?,
            })
        });
        correlations.collect()
    }
}

/// The properties of each correlation key of the file.
fn keys(document: &Document) -> Vec<Vec<&str>> {
    let keys = document
        .elements
        .iter()
        .filter(|element| element.tag == "correlationKey");
    let parts = keys.map(|key| {
        let parts = key.children.iter().map(|part| document.get(*part));
        let parts = parts.filter(|part| part.tag == "correlationPropertyRef");
        parts.map(|part| part.text.trim()).collect::<Vec<_>>()
    });
    parts.filter(|parts| !parts.is_empty()).collect()
}

/// Leaves the properties of the first key of which the message has all, in the order of the key.
fn in_key(keys: &[Vec<&str>], properties: &mut Vec<(String, NodeId)>) {
    let of_key = |key: &Vec<&str>| -> Option<Vec<(String, NodeId)>> {
        let one = |part: &&str| properties.iter().find(|(id, _)| id == part).cloned();
        key.iter().map(one).collect()
    };
    if let Some(whole) = keys.iter().find_map(of_key) {
        *properties = whole;
    }
}

/// What the process that is read compares with the properties of the message of this id.
pub(super) fn subscribed(reader: &mut Reader<'_>, message: &str) -> Option<Vec<Computed>> {
    let (document, correlations) = (reader.document, reader.correlations);
    let Some(properties) = correlations.messages.get(message) else {
        return Some(Vec::new());
    };
    let mut process = reader.node;
    while document.get(process).tag != "process" {
        let Some(parent) = document.get(process).parent else {
            return Some(Vec::new());
        };
        process = parent;
    }
    let mut expressions = Vec::new();
    for (property, path) in properties {
        let own = correlations.data.get(&(process, property.clone()));
        let element = document.get(*own.unwrap_or(path));
        let (text, language) = (element.text.trim(), element.attribute("language"));
        expressions.push(reader.expression(text, language, element.position)?);
    }
    Some(expressions)
}

/// The key that the properties give.
pub(super) fn key(properties: &[Computed], scope: &Visible<'_>) -> Result<String, Box<Failure>> {
    let values: Result<Vec<String>, _> = properties
        .iter()
        .map(|property| {
            let value = property.string("the correlation property", scope)?;
            value.ok_or_else(|| property.nothing("the correlation property", scope))
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
