//! The user task: work for a person.

use tidegate_model::document::Namespace;

use crate::compile::Reader;
use crate::decide::Turn;
use crate::element::{Active, Behaviour};
use crate::event::Event;
use crate::text::{Failure, Text};
use crate::visible::Visible;

#[derive(Debug)]
struct UserTask {
    assignee: Option<Text>,
    candidate_groups: Option<Text>,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let element = reader.element;
    let zeebe = element.extension(&Namespace::Zeebe, "assignmentDefinition");
    let mut text = |name: &str| {
        let zeebe = zeebe.and_then(|extension| extension.attribute(name));
        let given = zeebe
            .or_else(|| reader.vendor_attribute(name))
            .filter(|text| !text.trim().is_empty());
        match given {
            Some(text) => reader.text(text, element.position).map(Some),
            None => Some(None),
        }
    };
    let (assignee, candidate_groups) = (text("assignee")?, text("candidateGroups")?);
    Some(Box::new(UserTask {
        assignee,
        candidate_groups,
    }))
}

impl Behaviour for UserTask {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        let scope = turn.visible(me.key, Some(me.locals));
        let assignee = match &self.assignee {
            Some(text) => text
                .string("the assignee", &scope)?
                .filter(|name| !name.is_empty()),
            None => None,
        };
        let candidate_groups = match &self.candidate_groups {
            Some(text) => groups(text, &scope)?,
            None => Vec::new(),
        };
        turn.event(Event::UserTaskCreated {
            key: me.key,
            element: me.element,
            assignee,
            candidate_groups,
        });
        Ok(())
    }
}

/// A list of texts, or one text with commas.
fn groups(text: &Text, scope: &Visible<'_>) -> Result<Vec<String>, Box<Failure>> {
    let written = text.string("the candidate groups", scope)?.unwrap_or_default();
    let list = serde_json::from_str::<Vec<String>>(&written);
    let list = list.unwrap_or_else(|_| written.split(',').map(|name| name.trim().to_owned()).collect());
    Ok(list.into_iter().filter(|name| !name.is_empty()).collect())
}
