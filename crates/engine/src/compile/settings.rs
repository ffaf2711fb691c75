//! How many instances a process has at once, and how long they are remembered, as its model says: attributes of
//! `urn:tidegate:bpmn` at the process. Nothing here changes what an instance does.

use tidegate_model::Diagnostic;
use tidegate_model::document::{Attribute, Element, Namespace};

use crate::timer::iso;

/// The namespace of the attributes.
const NAMESPACE: &str = "urn:tidegate:bpmn";
/// The average month of a calendar, in milliseconds.
const MONTH_MS: i64 = 2_629_746_000;

/// What happens to a start when a process has as many live instances as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// It waits for its turn.
    #[default]
    Queue,
    /// It is refused.
    Skip,
    /// The oldest live instance is cancelled for it.
    Replace,
}

impl WhenFull {
    /// The word in a model and in the API.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Skip => "skip",
            Self::Replace => "replace",
        }
    }

    /// The one of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Queue, Self::Skip, Self::Replace]
            .into_iter()
            .find(|one| one.word() == word)
    }
}

/// What the model of a process says; `None` where it says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessSettings {
    /// How many instances may be live at once.
    pub max_instances: Option<u32>,
    /// What happens to a start beyond them.
    pub when_full: Option<WhenFull>,
    /// For how long finished instances are kept, in milliseconds.
    pub retention_ms: Option<i64>,
    /// How many finished instances are kept.
    pub retention_count: Option<u64>,
    /// How many journal entries of a live instance are kept.
    pub journal_limit: Option<u64>,
}

pub(super) fn read(process: &Element, diagnostics: &mut Vec<Diagnostic>) -> ProcessSettings {
    let mut settings = ProcessSettings::default();
    let own = Namespace::Other(NAMESPACE.to_owned());
    for attribute in process.attributes.iter().filter(|found| found.namespace == own) {
        let wrong = match attribute.name.as_str() {
            "maxInstances" => set(&mut settings.max_instances, positive(&attribute.value)),
            "whenFull" => set(
                &mut settings.when_full,
                WhenFull::from_word(attribute.value.trim()).ok_or("is none of queue, skip and replace"),
            ),
            "retention" => set(&mut settings.retention_ms, duration(&attribute.value)),
            "retentionCount" => set(&mut settings.retention_count, whole(&attribute.value)),
            "journalLimit" => set(&mut settings.journal_limit, whole(&attribute.value)),
            _ => None,
        };
        if let Some(wrong) = wrong {
            diagnostics.push(refuse(process, attribute, wrong));
        }
    }
    settings
}

fn set<T>(place: &mut Option<T>, read: Result<T, &'static str>) -> Option<&'static str> {
    match read {
        Ok(value) => {
            *place = Some(value);
            None
        }
        Err(wrong) => Some(wrong),
    }
}

fn positive(text: &str) -> Result<u32, &'static str> {
    match text.trim().parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("is not a whole number from 1 on"),
    }
}

fn whole(text: &str) -> Result<u64, &'static str> {
    text.trim().parse().map_err(|_| "is not a whole number")
}

fn duration(text: &str) -> Result<i64, &'static str> {
    let period = iso::duration(text).map_err(|_| "is not an ISO 8601 duration, for example P30D")?;
    Ok(period.ms + i64::from(period.months) * MONTH_MS)
}

fn refuse(process: &Element, attribute: &Attribute, wrong: &str) -> Diagnostic {
    let shown: String = attribute.value.chars().take(60).collect();
    let message = format!("tidegate:{} `{shown}` {wrong}", attribute.name);
    Diagnostic::error("setting-invalid", message)
        .hint("correct or remove it")
        .at(attribute.position)
        .element(process.id())
}
