//! End events: none, terminate, error, message, signal, escalation, and several at once.

use tidegate_model::Variables;

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::definition::FlowIndex;
use crate::element::throw_event::{self, Throw};
use crate::element::{Active, Behaviour, cancel, compensation, job};
use crate::text::Failure;

#[derive(Debug)]
enum EndEvent {
    None,
    Throws(Vec<Throw>),
    Terminate,
    Error { code: Box<str>, message: Box<str> },
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let definitions = reader.event_definitions();
    let [definition] = definitions.as_slice() else {
        return match definitions.is_empty() {
            true => Some(Box::new(EndEvent::None)),
            false => Some(Box::new(EndEvent::Throws(throw_event::read_all(
                reader,
                &definitions,
            )?))),
        };
    };
    if let Some(job) = throw_event::read_job(reader, &definitions) {
        return job.map(job::JobTask::boxed);
    }
    match reader.tag(*definition) {
        compensation::DEFINITION => compensation::read_throw(reader, *definition),
        cancel::DEFINITION => cancel::read_end(reader),
        "terminateEventDefinition" => Some(Box::new(EndEvent::Terminate)),
        "errorEventDefinition" => {
            let Some(error) = reader.error(*definition)? else {
                return reader.refuse(
                    "error-reference-missing",
                    "an error end event must say which error it throws",
                    "set errorRef to an `error` element",
                );
            };
            let message = error.name.unwrap_or_else(|| error.code.clone());
            Some(Box::new(EndEvent::Error {
                code: error.code,
                message,
            }))
        }
        _ => Some(Box::new(EndEvent::Throws(throw_event::read_all(
            reader,
            &definitions,
        )?))),
    }
}

impl Behaviour for EndEvent {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        match self {
            Self::None => turn.then(Step::Complete(me.key)),
            Self::Throws(throws) => return throw_event::throw_all(throws, turn, me),
            Self::Terminate => {
                turn.empty_scope(me.state.parent, Some(me.key));
                turn.give_up_compensation(me.state.parent);
                turn.then(Step::Complete(me.key));
            }
            Self::Error { code, message } => turn.throw(me.key, code, message.to_string(), Variables::new()),
        }
        Ok(())
    }

    fn leave(&self, _: &Turn<'_>, _: &Active<'_>) -> Result<Vec<FlowIndex>, Box<Failure>> {
        Ok(Vec::new())
    }
}
