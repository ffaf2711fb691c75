//! Escalation events: how an escalation is read.

use std::sync::Arc;

use tidegate_model::document::NodeId;

use crate::compile::{Reader, VENDORS};
use crate::element::ErrorCatch;

/// The code of the escalation that an `escalationEventDefinition` refers to; none inside when it refers to none.
pub(crate) fn read(reader: &mut Reader<'_>, definition: NodeId) -> Option<Option<Arc<str>>> {
    let escalation = reader.referred(definition, "escalationRef", "escalation")?;
    Some(escalation.map(|escalation| {
        let code = escalation
            .attribute("escalationCode")
            .filter(|code| !code.is_empty());
        let code = code.or(escalation.name()).or(escalation.id());
        code.unwrap_or_default().into()
    }))
}

/// Reads what an escalation event catches.
pub(crate) fn read_catch(reader: &mut Reader<'_>, definition: NodeId) -> Option<ErrorCatch> {
    let code = read(reader, definition)?;
    let element = reader.document.get(definition);
    let variable = VENDORS
        .iter()
        .find_map(|vendor| element.attribute_in(vendor, "escalationCodeVariable"));
    Some(ErrorCatch {
        code: code.map(|code| (&*code).into()),
        code_variable: variable.map(Box::from),
        message_variable: None,
    })
}
