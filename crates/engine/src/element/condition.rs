//! Conditional events: how a condition is read and awaited.

use tidegate_model::ElementIndex;
use tidegate_model::document::NodeId;

use crate::compile::{Reader, VENDORS};
use crate::decide::{Step, Turn};
use crate::element::Waiter;
use crate::event::Event;
use crate::text::Computed;

/// Reads a `conditionalEventDefinition`.
pub(crate) fn read(reader: &mut Reader<'_>, definition: NodeId) -> Option<Computed> {
    let document = reader.document;
    for attribute in &document.get(definition).attributes {
        let is_filter = matches!(attribute.name.as_str(), "variableName" | "variableEvents");
        if is_filter && VENDORS.contains(&attribute.namespace) {
            reader.warn_at(
                attribute.position,
                "extension-ignored",
                &format!(
                    "`{}`: the condition is looked at when any variable changes",
                    attribute.name
                ),
                "say in the condition itself which values it waits for, and remove the attribute",
            );
        }
    }
    let condition = document.child(definition, "condition").map(|(_, child)| child);
    match condition.filter(|condition| !condition.text.trim().is_empty()) {
        Some(condition) => reader.expression_of(condition),
        None => reader.refuse(
            "condition-missing",
            "a conditional event must say what it waits for",
            "add a `condition` with an expression",
        ),
    }
}

/// Waits for the condition, which may hold already.
pub(super) fn await_it(turn: &mut Turn<'_>, waiter: &Waiter<'_>, element: ElementIndex) {
    let owner = waiter.owner;
    turn.event(Event::ConditionAwaited { owner, element });
    turn.then(Step::Condition { owner, element });
}
