//! Sending a message: under which key and id, and how long it may wait for a taker.

use tidegate_model::document::{Extension, Namespace, NodeId};

use crate::compile::Reader;
use crate::decide::Turn;
use crate::element::Active;
use crate::element::message::{self, MessageSpec};
use crate::event::Event;
use crate::text::{Failure, Text};
use crate::timer;

/// A message that is sent.
#[derive(Debug)]
pub(crate) struct PublishSpec {
    message: MessageSpec,
    /// In place of the key of the message.
    correlation_key: Option<Text>,
    message_id: Option<Text>,
    time_to_live: Option<Text>,
}

/// Reads the message that `holder`, a message event definition or a send task, refers to, and `zeebe:publishMessage`.
pub(super) fn read(reader: &mut Reader<'_>, holder: NodeId) -> Option<PublishSpec> {
    let message = message::read(reader, holder)?;
    let Some(publish) = extension(reader, holder) else {
        return Some(PublishSpec {
            message,
            correlation_key: None,
            message_id: None,
            time_to_live: None,
        });
    };
    let correlation_key = reader.text_of(publish, "correlationKey");
    let message_id = reader.text_of(publish, "messageId");
    let time_to_live = reader.text_of(publish, "timeToLive");
    let (correlation_key, message_id, time_to_live) = (correlation_key?, message_id?, time_to_live?);
    if let Some(literal) = time_to_live.as_ref().and_then(Text::literal)
        && let Err(wrong) = timer::span_ms(literal, tidegate_model::Timestamp::default())
    {
        let hint = "write an ISO 8601 duration such as PT1H, or an expression that gives one";
        return reader.refuse_at(publish.position, "time-to-live-invalid", &wrong, hint);
    }
    Some(PublishSpec {
        message,
        correlation_key,
        message_id,
        time_to_live,
    })
}

/// `zeebe:publishMessage`, which stands at the element or at its message event definition.
fn extension<'a>(reader: &Reader<'a>, holder: NodeId) -> Option<&'a Extension> {
    let at = |element: &'a tidegate_model::document::Element| {
        element.extension(&Namespace::Zeebe, "publishMessage")
    };
    at(reader.element).or_else(|| at(reader.document.get(holder)))
}

/// Sends the message.
pub(super) fn publish(spec: &PublishSpec, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
    let scope = turn.visible(me.key, Some(me.locals));
    let name = spec.message.name.required("the message name", &scope)?;
    let correlation_key = match &spec.correlation_key {
        Some(key) => key.required("the correlation key", &scope)?,
        None => spec.message.correlation_key(&scope)?,
    };
    let given = |text: &Option<Text>, what: &str| match text {
        Some(text) => Ok(text.string(what, &scope)?.filter(|text| !text.is_empty())),
        None => Ok::<_, Box<Failure>>(None),
    };
    let message_id = given(&spec.message_id, "the message id")?;
    let ttl_ms = match given(&spec.time_to_live, "the time to live")? {
        Some(text) => Some(timer::span_ms(&text, turn.now).map_err(|wrong| {
            let message = format!("the time to live: {wrong}. Correct the variables and retry.");
            Failure::new("expression-failed", message)
        })?),
        None => None,
    };
    turn.event(Event::MessagePublished {
        key: me.key,
        element: me.element,
        name,
        correlation_key,
        variables: me.locals.clone(),
        ttl_ms,
        message_id,
    });
    Ok(())
}
