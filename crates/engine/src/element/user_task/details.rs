//! What a model says of a user task besides who has it, in the words of each modeler.

use tidegate_model::document::Namespace;
use tidegate_model::task::FormBinding;
use tidegate_model::{TaskDetails, Timestamp};

use super::names;
use crate::compile::Reader;
use crate::text::{Failure, Text};
use crate::timer;
use crate::visible::Visible;

#[derive(Debug, Default)]
pub(super) struct Details {
    candidate_users: Option<Text>,
    form_key: Option<Text>,
    form_id: Option<Text>,
    external_form_reference: Option<Text>,
    due_date: Option<Text>,
    follow_up_date: Option<Text>,
    priority: Option<Text>,
    form_binding: Option<Binding>,
}

/// Which version of the form is meant; what it is called may be an expression.
#[derive(Debug)]
enum Binding {
    Latest,
    Deployment,
    VersionTag(Text),
    Version(Text),
}

/// Reads `zeebe:assignmentDefinition`, `zeebe:formDefinition`, `zeebe:taskSchedule` and `zeebe:priorityDefinition`, and
/// the attributes of the Java engines.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<Details> {
    let mut text =
        |extension: &str, name: &str, vendor: Option<&str>| read_text(reader, extension, name, vendor);
    let candidate_users = text("assignmentDefinition", "candidateUsers", Some("candidateUsers"));
    let form_key = text("formDefinition", "formKey", Some("formKey"));
    let form_id = text("formDefinition", "formId", Some("formRef"));
    let external_form_reference = text("formDefinition", "externalReference", None);
    let due_date = text("taskSchedule", "dueDate", Some("dueDate"));
    let follow_up_date = text("taskSchedule", "followUpDate", Some("followUpDate"));
    let priority = text("priorityDefinition", "priority", Some("priority"));
    let form_binding = read_binding(reader);
    let details = Details {
        form_binding: form_binding?,
        candidate_users: candidate_users?,
        form_key: form_key?,
        form_id: form_id?,
        external_form_reference: external_form_reference?,
        due_date: due_date?,
        follow_up_date: follow_up_date?,
        priority: priority?,
    };
    let literal = |text: &Option<Text>| text.as_ref().and_then(|text| text.literal().cloned());
    for (what, date) in [
        ("due date", literal(&details.due_date)),
        ("follow-up date", literal(&details.follow_up_date)),
    ] {
        if let Some(Err(wrong)) = date.map(|date| timer::moment(&date, Timestamp::default())) {
            let hint = "write an ISO 8601 date, date and time or duration, or an expression that gives one";
            return reader.refuse("user-task-date-invalid", &format!("the {what}: {wrong}"), hint);
        }
    }
    if let Some(Err(wrong)) = literal(&details.priority).map(|text| number(&text)) {
        let hint = "write a whole number, or an expression that gives one";
        return reader.refuse("user-task-priority-invalid", &wrong, hint);
    }
    Some(details)
}

/// The text of an extension's attribute, else of an attribute of the Java engines. None if it was refused; inside, none
/// if there is none.
pub(super) fn read_text(
    reader: &mut Reader<'_>,
    extension: &str,
    name: &str,
    vendor: Option<&str>,
) -> Option<Option<Text>> {
    if let Some(found) = reader.element.extension(&Namespace::Zeebe, extension)
        && found.attribute(name).is_some_and(|text| !text.trim().is_empty())
    {
        return reader.text_of(found, name);
    }
    let given = vendor.and_then(|name| reader.vendor_attribute(name));
    match given.filter(|text| !text.trim().is_empty()) {
        Some(text) => reader.text(text, reader.element.position).map(Some),
        None => Some(None),
    }
}

/// `bindingType` and `versionTag` of `zeebe:formDefinition`, or `formRefBinding` and `formRefVersion` of the Java engines.
fn read_binding(reader: &mut Reader<'_>) -> Option<Option<Binding>> {
    let mut text = |name: &str, vendor: Option<&str>| read_text(reader, "formDefinition", name, vendor);
    let binding = text("bindingType", Some("formRefBinding"))?;
    let tag = text("versionTag", None)?;
    let version = read_text(reader, "", "", Some("formRefVersion"))?;
    let Some(binding) = binding else {
        return Some(None);
    };
    let name = binding.literal().map_or("", |name| &**name);
    let missing = |what: &str| {
        (
            format!("the form binding `{name}` needs {what}"),
            format!("add {what}"),
        )
    };
    let (message, hint) = match (name, tag, version) {
        ("latest", _, _) => return Some(Some(Binding::Latest)),
        ("deployment", _, _) => return Some(Some(Binding::Deployment)),
        ("versionTag", Some(tag), _) => return Some(Some(Binding::VersionTag(tag))),
        ("version", _, Some(version)) => match version.literal().map(|literal| form_version(literal)) {
            Some(Err(wrong)) => (
                wrong,
                "write a whole number, or an expression that gives one".to_owned(),
            ),
            _ => return Some(Some(Binding::Version(version))),
        },
        ("versionTag", None, _) => missing("a `versionTag`"),
        ("version", _, None) => missing("a `formRefVersion`"),
        _ => (
            "the form binding is none that is known".to_owned(),
            "write `latest`, `deployment`, `versionTag` or `version`".to_owned(),
        ),
    };
    reader.refuse("form-binding-invalid", &message, &hint)
}

fn form_version(text: &str) -> Result<u32, String> {
    let text = text.trim();
    text.parse()
        .map_err(|_| format!("`{text}` is not a version of a form: it must be a whole number"))
}

fn number(text: &str) -> Result<i32, String> {
    let text = text.trim();
    text.parse()
        .map_err(|_| format!("`{text}` is not a priority: it must be a whole number"))
}

impl Details {
    /// What they are now.
    pub(super) fn evaluate(&self, scope: &Visible<'_>) -> Result<TaskDetails, Box<Failure>> {
        let given = |text: &Option<Text>, what: &str| match text {
            Some(text) => Ok(text.string(what, scope)?.filter(|text| !text.trim().is_empty())),
            None => Ok::<_, Box<Failure>>(None),
        };
        let wrong = |what: &str, wrong: String| {
            let message = format!("{what}: {wrong}. Correct the variables and retry.");
            Failure::new("expression-failed", message)
        };
        let date = |text: &Option<Text>, what: &str| {
            let text = given(text, what)?;
            let date = text.map(|text| timer::moment(&text, scope.now)).transpose();
            date.map_err(|message| wrong(what, message))
        };
        let priority = given(&self.priority, "the priority")?;
        let form_binding = match &self.form_binding {
            None => None,
            Some(Binding::Latest) => Some(FormBinding::Latest),
            Some(Binding::Deployment) => Some(FormBinding::Deployment),
            Some(Binding::VersionTag(tag)) => Some(FormBinding::VersionTag(
                tag.required("the version tag of the form", scope)?,
            )),
            Some(Binding::Version(version)) => {
                let what = "the version of the form";
                let version = form_version(&version.required(what, scope)?);
                Some(FormBinding::Version(
                    version.map_err(|message| wrong(what, message))?,
                ))
            }
        };
        Ok(TaskDetails {
            form_binding,
            candidate_users: match &self.candidate_users {
                Some(text) => names(text, "the candidate users", scope)?,
                None => Vec::new(),
            },
            form_key: given(&self.form_key, "the form key")?,
            form_id: given(&self.form_id, "the form id")?,
            external_form_reference: given(&self.external_form_reference, "the form reference")?,
            due_date: date(&self.due_date, "the due date")?,
            follow_up_date: date(&self.follow_up_date, "the follow-up date")?,
            priority: priority
                .map(|text| number(&text))
                .transpose()
                .map_err(|message| wrong("the priority", message))?,
        })
    }
}
