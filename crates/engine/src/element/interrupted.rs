//! What becomes of an activity whose work was under way when the runtime cut it or the process went away.
//!
//! Nobody knows how far such work came. `tidegate:interrupted` at the activity says what to do about it, as an attribute
//! or as an extension property of that name: `rerun` (the default) does it again, `ask` has a person look at it first,
//! `fail` throws the BPMN error `interrupted` at the activity.

use tidegate_model::document::{Namespace, Position};

use crate::compile::{Reader, VENDORS};

/// The vocabulary of Tidegate's own attributes.
const NAMESPACE: &str = "urn:tidegate:bpmn";
const NAME: &str = "interrupted";
/// The name of the extension property, for modelling tools that know no foreign attributes.
const PROPERTY: &str = "tidegate:interrupted";

/// The code of the error that policy `fail` throws, and of the incident that policy `ask` raises.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// What to do with work that was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum WhenInterrupted {
    /// Do it again.
    #[default]
    Rerun,
    /// Raise an incident.
    Ask,
    /// Throw a BPMN error.
    Fail,
}

/// Reads the policy of an activity.
pub(crate) fn read(reader: &mut Reader<'_>) -> WhenInterrupted {
    let Some((text, position)) = written(reader) else {
        return WhenInterrupted::default();
    };
    match text.trim() {
        "rerun" => WhenInterrupted::Rerun,
        "ask" => WhenInterrupted::Ask,
        "fail" => WhenInterrupted::Fail,
        other => {
            let shown: String = other.chars().take(60).collect();
            let message = format!("{PROPERTY} is `{shown}`, which is no policy for interrupted work");
            let hint = "write `rerun`, `ask` or `fail`";
            let _: Option<()> = reader.refuse_at(position, "interrupted-invalid", &message, hint);
            WhenInterrupted::default()
        }
    }
}

fn written(reader: &Reader<'_>) -> Option<(String, Position)> {
    let own = Namespace::Other(NAMESPACE.to_owned());
    let attributes = reader.element.attributes.iter();
    let mut attributes = attributes.filter(|attribute| attribute.namespace == own && attribute.name == NAME);
    if let Some(attribute) = attributes.next() {
        return Some((attribute.value.clone(), attribute.position));
    }
    let vocabularies = std::iter::once(&Namespace::Zeebe).chain(VENDORS.iter());
    let holders = vocabularies.filter_map(|vendor| reader.element.extension(vendor, "properties"));
    let mut properties = holders.flat_map(|holder| holder.children_named("property"));
    properties.find_map(|property| {
        (property.attribute("name") == Some(PROPERTY)).then(|| {
            let value = property.attribute("value").unwrap_or_default().to_owned();
            (value, property.position)
        })
    })
}
