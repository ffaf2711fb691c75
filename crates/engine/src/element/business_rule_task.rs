//! The business rule task: a decision, asked for as a job of type `decision`, or work of a worker like any other.

use std::sync::Arc;

use tidegate_model::document::Namespace;

use crate::compile::Reader;
use crate::element::{Behaviour, JobSpec, job};

/// The job type of decisions that the host evaluates.
const DECISION: &str = "decision";

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    if let Some(job) = JobSpec::read(reader) {
        return job.map(job::JobTask::boxed);
    }
    let element = reader.element;
    let zeebe = element.extension(&Namespace::Zeebe, "calledDecision");
    let (decision, result, binding, version) = match zeebe {
        Some(zeebe) => (
            zeebe.attribute("decisionId"),
            zeebe.attribute("resultVariable"),
            zeebe.attribute("bindingType"),
            zeebe.attribute("versionTag"),
        ),
        None => (
            reader.vendor_attribute("decisionRef"),
            reader.vendor_attribute("resultVariable"),
            reader.vendor_attribute("decisionRefBinding"),
            reader
                .vendor_attribute("decisionRefVersion")
                .or_else(|| reader.vendor_attribute("decisionRefVersionTag")),
        ),
    };
    let Some(decision) = decision.map(str::trim).filter(|decision| !decision.is_empty()) else {
        return reader.refuse(
            "decision-missing",
            "the business rule task does not say which decision it asks for",
            "add <zeebe:calledDecision decisionId=\"…\" resultVariable=\"…\"/>, or a job type",
        );
    };
    let given = [
        ("decisionId", Some(decision)),
        ("resultVariable", result),
        ("bindingType", binding),
        ("version", version),
        ("mapDecisionResult", reader.vendor_attribute("mapDecisionResult")),
    ];
    let headers = given
        .into_iter()
        .filter_map(|(name, value)| Some((Arc::from(name), value?.into())));
    let headers = headers.collect();
    JobSpec::fixed(reader, DECISION, headers).map(job::JobTask::boxed)
}
