//! The send task: a job where it names one, else a message.

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::element::{Active, Behaviour, JobSpec, PublishSpec, job, publish};
use crate::text::Failure;

#[derive(Debug)]
struct SendTask {
    message: PublishSpec,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    if let Some(job) = JobSpec::read(reader) {
        return job.map(job::JobTask::boxed);
    }
    if reader.element.attribute("messageRef").is_none() {
        return reader.refuse(
            "job-type-missing",
            "it says neither which message it sends nor which work it asks for",
            "set messageRef, or add <zeebe:taskDefinition type=\"…\"/>, or camunda:type=\"external\" with camunda:topic",
        );
    }
    let message = publish::read(reader, reader.node)?;
    Some(Box::new(SendTask { message }))
}

impl Behaviour for SendTask {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        publish::publish(&self.message, turn, me)?;
        turn.then(Step::Complete(me.key));
        Ok(())
    }
}
