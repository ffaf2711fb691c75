//! Throw events, also those at an end: none, message, signal, escalation, link, and several at once.

use std::sync::Arc;

use tidegate_model::document::NodeId;

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::element::{
    Active, Behaviour, JobSpec, PublishSpec, SignalSpec, compensation, escalation, job, pass_through,
    publish, signal,
};
use crate::text::Failure;

/// One thing that is thrown.
#[derive(Debug)]
pub(super) enum Throw {
    Message(PublishSpec),
    Signal(SignalSpec),
    Escalation(Arc<str>),
}

#[derive(Debug)]
struct ThrowEvent {
    throws: Vec<Throw>,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let definitions = reader.event_definitions();
    match definitions.as_slice() {
        [] => return Some(pass_through::placeholder()),
        [only] if reader.tag(*only) == compensation::DEFINITION => {
            return compensation::read_throw(reader, *only);
        }
        // The way on is a flow that `compile` makes.
        [link] if reader.tag(*link) == "linkEventDefinition" => return Some(pass_through::placeholder()),
        _ => {}
    }
    if let Some(job) = read_job(reader, &definitions) {
        return job.map(job::JobTask::boxed);
    }
    let throws = read_all(reader, &definitions)?;
    Some(Box::new(ThrowEvent { throws }))
}

/// The job that a modeler wants in place of a message.
pub(super) fn read_job(reader: &mut Reader<'_>, definitions: &[NodeId]) -> Option<Option<JobSpec>> {
    let message = definitions
        .iter()
        .find(|definition| reader.tag(**definition) == "messageEventDefinition")?;
    JobSpec::read(reader).or_else(|| JobSpec::read_topic(reader, *message))
}

/// Reads everything that is thrown.
pub(super) fn read_all(reader: &mut Reader<'_>, definitions: &[NodeId]) -> Option<Vec<Throw>> {
    let throws: Vec<Option<Throw>> = definitions
        .iter()
        .map(|definition| read_one(reader, *definition))
        .collect();
    throws.into_iter().collect()
}

fn read_one(reader: &mut Reader<'_>, definition: NodeId) -> Option<Throw> {
    match reader.tag(definition) {
        "messageEventDefinition" => publish::read(reader, definition).map(Throw::Message),
        "signalEventDefinition" => signal::read(reader, definition).map(Throw::Signal),
        "escalationEventDefinition" => match escalation::read(reader, definition)? {
            Some(code) => Some(Throw::Escalation(code)),
            None => reader.refuse(
                "escalation-reference-missing",
                "it must say which escalation it throws",
                "set escalationRef to an `escalation` element",
            ),
        },
        _ => reader.unsupported_event(&[definition]),
    }
}

impl Throw {
    /// Throws it from `me`.
    pub(super) fn throw(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        match self {
            Self::Message(message) => publish::publish(message, turn, me),
            Self::Signal(signal) => signal::throw(signal, turn, me),
            Self::Escalation(code) => {
                turn.then(Step::Escalate {
                    key: me.key,
                    code: Arc::clone(code),
                    variables: me.locals.clone(),
                });
                Ok(())
            }
        }
    }
}

/// Throws everything, then goes on, unless what was thrown has ended the thrower.
pub(super) fn throw_all(throws: &[Throw], turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
    for throw in throws {
        throw.throw(turn, me)?;
    }
    turn.then(Step::Thrown(me.key));
    Ok(())
}

impl Behaviour for ThrowEvent {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        throw_all(&self.throws, turn, me)
    }
}
