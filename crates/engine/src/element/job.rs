//! Jobs: how an activity says which work it asks for.

use std::sync::Arc;

use tidegate_model::document::{Extension, Namespace, NodeId};

use crate::compile::{Reader, VENDORS};
use crate::decide::Turn;
use crate::element::retry::{self, RetryCycle};
use crate::element::{Active, Behaviour, delegate};
use crate::event::Event;
use crate::text::{Failure, Text};
use crate::timer::Period;
use crate::visible::Visible;

/// Tries that a job has where the model does not say.
const DEFAULT_RETRIES: u32 = 3;

/// The work an activity asks for.
#[derive(Debug)]
pub(crate) struct JobSpec {
    pub(crate) job_type: Text,
    retries: Option<Text>,
    cycle: Option<RetryCycle>,
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
    /// A job of a fixed type. None if what the element says of its tries was refused.
    pub(crate) fn fixed(
        reader: &mut Reader<'_>,
        job_type: &str,
        headers: Vec<(Arc<str>, Arc<str>)>,
    ) -> Option<Self> {
        Some(Self {
            job_type: Text::Literal(job_type.into()),
            retries: None,
            cycle: retry::read(reader)?,
            headers: headers.into(),
        })
    }

    /// How long the job rests after a failure that leaves so many tries, where the model says so.
    pub(crate) fn rest(&self, left: u32, scope: &Visible<'_>) -> Result<Option<Period>, Box<Failure>> {
        match &self.cycle {
            Some(cycle) => Ok(cycle.now(scope)?.rest(left)),
            None => Ok(None),
        }
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
        let (job_type, cycle) = (reader.text(topic, position), retry::read(reader));
        Some(job_type.zip(cycle).map(|(job_type, cycle)| Self {
            job_type,
            retries: None,
            cycle,
            headers: Vec::new().into(),
        }))
    }
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
    let cycle = retry::read(reader);
    let (job_type, retries, cycle) = (job_type?, retries?, cycle?);
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
        cycle,
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
        let retries = match (&self.job.retries, &self.job.cycle) {
            (None, None) => DEFAULT_RETRIES,
            (None, Some(cycle)) => cycle.now(&scope)?.tries,
            (Some(text), _) => {
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
