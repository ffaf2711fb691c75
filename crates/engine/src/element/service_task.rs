//! Service tasks.

use crate::compile::Reader;
use crate::element::{Behaviour, JobSpec, job};

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    match JobSpec::read(reader) {
        Some(job) => job.map(job::JobTask::boxed),
        None if reader.element.tag == "serviceTask" => job::missing_type(reader),
        None => {
            let tag = reader.element.tag.clone();
            reader.unsupported(&format!("a `{tag}` without a job type"))
        }
    }
}
