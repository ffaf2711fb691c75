//! The user task: work for a person.

mod details;

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
    details: details::Details,
}

/// The marker `zeebe:userTask` says nothing: without it a user task is one as well.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let mut assigned = |name: &str| details::read_text(reader, "assignmentDefinition", name, Some(name));
    let (assignee, candidate_groups) = (assigned("assignee"), assigned("candidateGroups"));
    let details = details::read(reader);
    Some(Box::new(UserTask {
        assignee: assignee?,
        candidate_groups: candidate_groups?,
        details: details?,
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
            Some(text) => names(text, "the candidate groups", &scope)?,
            None => Vec::new(),
        };
        let details = self.details.evaluate(&scope)?.boxed();
        turn.event(Event::UserTaskCreated {
            key: me.key,
            element: me.element,
            assignee,
            candidate_groups,
            details,
        });
        Ok(())
    }
}

/// A list of texts, or one text with commas.
fn names(text: &Text, what: &str, scope: &Visible<'_>) -> Result<Vec<String>, Box<Failure>> {
    let written = text.string(what, scope)?.unwrap_or_default();
    let list = serde_json::from_str::<Vec<String>>(&written);
    let list = list.unwrap_or_else(|_| written.split(',').map(|name| name.trim().to_owned()).collect());
    Ok(list.into_iter().filter(|name| !name.is_empty()).collect())
}
