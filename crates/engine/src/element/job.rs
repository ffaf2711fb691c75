//! Jobs: how an activity says which work it asks for.

use std::sync::Arc;

use tidegate_model::document::{Extension, Namespace, NodeId};

use crate::compile::{Reader, VENDORS};
use crate::decide::Turn;
use crate::element::{Active, Behaviour, delegate};
use crate::event::Event;
use crate::text::{Failure, Text};

/// Tries that a job has where the model does not say.
const DEFAULT_RETRIES: u32 = 3;

/// The work an activity asks for.
#[derive(Debug)]
pub(crate) struct JobSpec {
    pub(crate) job_type: Text,
    retries: Option<Text>,
    pub(crate) headers: Arc<[(Arc<str>, Arc<str>)]>,
}

/// An activity that is done by a job.
#[derive(Debug)]
pub(crate) struct JobTask {
    job: JobSpec,
}

impl JobTask {
    pub(crate) fn boxed(job: JobSpec) -> Box<dyn Behaviour> {
        Box::new(Self { job })
    }
}

impl JobSpec {
    /// A job of a fixed type.
    pub(crate) fn fixed(job_type: &str, headers: Vec<(Arc<str>, Arc<str>)>) -> Self {
        Self {
            job_type: Text::Literal(job_type.into()),
            retries: None,
            headers: headers.into(),
        }
    }

    /// A job of a fixed type with tries of its own.
    pub(super) fn with_retries(self, retries: Option<Text>) -> Self {
        Self { retries, ..self }
    }

    /// Reads `zeebe:taskDefinition`, or the external task or Java code of the Java engines. None if neither is there; inside, none
    /// if it was refused.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Option<Self>> {
        if let Some(definition) = reader.element.extension(&Namespace::Zeebe, "taskDefinition") {
            return Some(read_zeebe(reader, definition));
        }
        Self::read_topic(reader, reader.node)
    }

    /// Reads the external task or the Java code that `node` asks for, the element or one of its event definitions.
    pub(crate) fn read_topic(reader: &mut Reader<'_>, node: NodeId) -> Option<Option<Self>> {
        let element = reader.document.get(node);
        let topic = VENDORS
            .iter()
            .find_map(|vendor| element.attribute_in(vendor, "topic"));
        let Some(topic) = topic else {
            return delegate::read(reader, node);
        };
        if topic.trim().is_empty() {
            return Some(missing_type(reader));
        }
        let position = reader.element.position;
        let retries = vendor_retries(reader);
        Some(reader.text(topic, position).map(|job_type| Self {
            job_type,
            retries,
            headers: Vec::new().into(),
        }))
    }
}

/// The tries of `failedJobRetryTimeCycle`: `R3/PT10M` has three.
pub(super) fn vendor_retries(reader: &Reader<'_>) -> Option<Text> {
    let cycle = VENDORS
        .iter()
        .find_map(|vendor| reader.element.extension(vendor, "failedJobRetryTimeCycle"))?;
    let count = cycle.text.trim().strip_prefix('R')?.split('/').next()?;
    count.parse::<u32>().ok()?;
    Some(Text::Literal(count.into()))
}

fn read_zeebe(reader: &mut Reader<'_>, definition: &Extension) -> Option<JobSpec> {
    let job_type = match reader.text_of(definition, "type") {
        Some(None) => missing_type(reader),
        read => read.flatten(),
    };
    let mut retries = reader.text_of(definition, "retries");
    if let Some(literal) = retries.as_ref().and_then(|text| text.as_ref()?.literal())
        && literal.parse::<u32>().is_err()
    {
        retries = reader.refuse_at(
            definition.position,
            "job-retries-invalid",
            &format!("`{literal}` is not a number of retries"),
            "write a whole number, or an expression that gives one",
        );
    }
    let (job_type, retries) = (job_type?, retries?);
    let headers = reader.element.extension(&Namespace::Zeebe, "taskHeaders");
    let headers = headers
        .into_iter()
        .flat_map(|headers| headers.children_named("header"));
    let headers = headers.filter_map(|header| {
        Some((
            header.attribute("key")?.into(),
            header.attribute("value").unwrap_or_default().into(),
        ))
    });
    Some(JobSpec {
        job_type,
        retries,
        headers: headers.collect(),
    })
}

/// Says that an activity has no job type.
pub(crate) fn missing_type<T>(reader: &mut Reader<'_>) -> Option<T> {
    reader.refuse(
        "job-type-missing",
        "it does not say which work it asks for",
        "add <zeebe:taskDefinition type=\"…\"/>, or camunda:type=\"external\" with camunda:topic",
    )
}

impl Behaviour for JobTask {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        let scope = turn.visible(me.key, Some(me.locals));
        let job_type = match &self.job.job_type {
            Text::Literal(_) => None,
            Text::Computed(computed) => {
                let job_type = computed
                    .string("the job type", &scope)?
                    .filter(|text| !text.is_empty());
                Some(job_type.ok_or_else(|| computed.nothing("the job type", &scope))?)
            }
        };
        let retries = match &self.job.retries {
            None => DEFAULT_RETRIES,
            Some(text) => {
                let retries = text.string("the retries", &scope)?.unwrap_or_default();
                retries.trim().parse().map_err(|_| {
                    let message =
                        format!("`{retries}` is not a number of retries. Correct the variables and retry.");
                    Failure::new("expression-failed", message)
                })?
            }
        };
        turn.event(Event::JobCreated {
            key: me.key,
            element: me.element,
            retries: retries.max(1),
            job_type,
        });
        Ok(())
    }

    fn job(&self) -> Option<&JobSpec> {
        Some(&self.job)
    }
}
