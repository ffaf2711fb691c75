//! What a user task tells people, in the words of each modeler.

mod common;

use common::{Host, errors, load};
use tidegate_model::effect::UserTask;
use tidegate_model::task::FormBinding;
use tidegate_model::{CommandKind, Effect, TaskDetails, Timestamp, Variables};

fn file(task: &str) -> String {
    format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"
 xmlns:camunda="http://camunda.org/schema/1.0/bpmn" xmlns:operaton="http://operaton.org/schema/1.0/bpmn"
 xmlns:flowable="http://flowable.org/bpmn" xmlns:activiti="http://activiti.org/bpmn" targetNamespace="urn:t">
<process id="p" isExecutable="true"><startEvent id="s"/>{task}<sequenceFlow id="f" sourceRef="s" targetRef="t"/></process></definitions>"#
    )
}

/// Why a model with the task is refused.
fn refused(task: &str) -> Vec<String> {
    let compiled = load("p.bpmn", file(task).as_bytes(), &[]);
    errors(&compiled.diagnostics)
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// The first user task of the model, or the incident in its place. The instance begins at 2026-01-01.
fn open(task: &str, variables: &str) -> Result<UserTask, String> {
    let compiled = load("p.bpmn", file(task).as_bytes(), &[]);
    assert_eq!(errors(&compiled.diagnostics), [] as [&str; 0], "{task}");
    let mut host = Host::new(&compiled.definitions[0]);
    let start = CommandKind::Start {
        element: None,
        variables: Variables::parse(variables).unwrap(),
    };
    let (_, effects) = host.command(start).expect("it starts");
    let mut found = effects.into_iter().filter_map(|effect| match effect {
        Effect::OpenUserTask(task) => Some(Ok(task)),
        Effect::RaiseIncident(incident) => Some(Err(incident.message)),
        _ => None,
    });
    found.next().expect("a user task or an incident")
}

fn at(text: &str) -> Option<Timestamp> {
    Some(Timestamp::parse(text).unwrap())
}

#[test]
fn a_user_task_says_who_may_take_it_by_when_and_with_which_form() {
    let task = r#"<userTask id="t"><extensionElements><zeebe:userTask/>
<zeebe:assignmentDefinition candidateUsers="= [&quot;ada&quot;, second]" candidateGroups="sales"/>
<zeebe:formDefinition formId="= &quot;form-&quot; + kind" externalReference="crm:7"/>
<zeebe:taskSchedule dueDate="= now() + duration(&quot;P2D&quot;)" followUpDate="2026-01-02T08:00:00+01:00"/>
<zeebe:priorityDefinition priority="= 40 + 2"/></extensionElements></userTask>"#;
    let opened = open(task, r#"{"second": "bob", "kind": "a"}"#).unwrap();
    assert_eq!(opened.candidate_groups, ["sales"]);
    let expected = TaskDetails {
        candidate_users: vec!["ada".to_owned(), "bob".to_owned()],
        form_key: None,
        form_id: Some("form-a".to_owned()),
        external_form_reference: Some("crm:7".to_owned()),
        due_date: at("2026-01-03T00:00:00Z"),
        follow_up_date: at("2026-01-02T07:00:00Z"),
        priority: Some(42),
        form_binding: None,
    };
    assert_eq!(opened.details, expected);
    let embedded = r#"<userTask id="t"><extensionElements><zeebe:formDefinition formKey="embedded:a"/></extensionElements></userTask>"#;
    assert_eq!(
        open(embedded, "{}").unwrap().details.form_key.as_deref(),
        Some("embedded:a")
    );
}

#[test]
fn the_java_engines_say_it_with_attributes() {
    for vendor in ["camunda", "operaton", "flowable", "activiti"] {
        let task = r#"<userTask id="t" camunda:assignee="${boss}" camunda:candidateUsers="ada, ${second}" camunda:formKey="embedded:app:${kind}.html" camunda:formRef="form" camunda:dueDate="${due}" camunda:followUpDate="P1D" camunda:priority="7"/>"#;
        let task = task.replace("camunda:", &format!("{vendor}:"));
        let opened = open(
            &task,
            r#"{"boss": "eve", "second": "bob", "kind": "a", "due": "2026-02-01"}"#,
        )
        .unwrap();
        assert_eq!(opened.assignee.as_deref(), Some("eve"), "{vendor}");
        let expected = TaskDetails {
            candidate_users: vec!["ada".to_owned(), "bob".to_owned()],
            form_key: Some("embedded:app:a.html".to_owned()),
            form_id: Some("form".to_owned()),
            external_form_reference: None,
            due_date: at("2026-02-01T00:00:00Z"),
            follow_up_date: at("2026-01-02T00:00:00Z"),
            priority: Some(7),
            form_binding: None,
        };
        assert_eq!(opened.details, expected, "{vendor}");
    }
}

#[test]
fn a_form_says_which_of_its_versions_is_meant() {
    for (task, expected) in [
        (r#"<userTask id="t" camunda:formRef="f"/>"#, None),
        (
            r#"<userTask id="t"><extensionElements><zeebe:formDefinition formId="f" bindingType="latest"/></extensionElements></userTask>"#,
            Some(FormBinding::Latest),
        ),
        (
            r#"<userTask id="t"><extensionElements><zeebe:formDefinition formId="f" bindingType="deployment"/></extensionElements></userTask>"#,
            Some(FormBinding::Deployment),
        ),
        (
            r#"<userTask id="t"><extensionElements><zeebe:formDefinition formId="f" bindingType="versionTag" versionTag="v1.2"/></extensionElements></userTask>"#,
            Some(FormBinding::VersionTag("v1.2".to_owned())),
        ),
        (
            r#"<userTask id="t" camunda:formRef="f" camunda:formRefBinding="latest"/>"#,
            Some(FormBinding::Latest),
        ),
        (
            r#"<userTask id="t" camunda:formRef="f" camunda:formRefBinding="deployment"/>"#,
            Some(FormBinding::Deployment),
        ),
        (
            r#"<userTask id="t" camunda:formRef="f" camunda:formRefBinding="version" camunda:formRefVersion="3"/>"#,
            Some(FormBinding::Version(3)),
        ),
        (
            r#"<userTask id="t" camunda:formRef="f" camunda:formRefBinding="version" camunda:formRefVersion="${v}"/>"#,
            Some(FormBinding::Version(4)),
        ),
    ] {
        let details = open(task, r#"{"v": 4}"#).unwrap().details;
        assert_eq!(details.form_id.as_deref(), Some("f"), "{task}");
        assert_eq!(details.form_binding, expected, "{task}");
    }
    for wrong in [
        r#"<userTask id="t"><extensionElements><zeebe:formDefinition formId="f" bindingType="newest"/></extensionElements></userTask>"#,
        r#"<userTask id="t"><extensionElements><zeebe:formDefinition formId="f" bindingType="versionTag"/></extensionElements></userTask>"#,
        r#"<userTask id="t" camunda:formRef="f" camunda:formRefBinding="version"/>"#,
        r#"<userTask id="t" camunda:formRef="f" camunda:formRefBinding="version" camunda:formRefVersion="one"/>"#,
    ] {
        assert_eq!(refused(wrong), ["form-binding-invalid"], "{wrong}");
    }
    let incident = open(
        r#"<userTask id="t" camunda:formRef="f" camunda:formRefBinding="version" camunda:formRefVersion="${v}"/>"#,
        r#"{"v": "x"}"#,
    );
    let incident = incident.unwrap_err();
    assert!(
        incident.starts_with("the version of the form: `x` is not a version"),
        "{incident}"
    );
}

#[test]
fn what_is_left_out_or_null_is_nothing() {
    let task = r#"<userTask id="t"><extensionElements><zeebe:taskSchedule dueDate="= due" followUpDate=""/><zeebe:priorityDefinition priority="= urgent"/></extensionElements></userTask>"#;
    assert_eq!(open(task, "{}").unwrap().details, TaskDetails::default());
}

#[test]
fn a_value_that_does_not_fit_is_an_incident() {
    for (task, what) in [
        (
            r#"<userTask id="t"><extensionElements><zeebe:taskSchedule dueDate="= due"/></extensionElements></userTask>"#,
            "the due date: `next week` is not an ISO 8601 date",
        ),
        (
            r#"<userTask id="t" flowable:priority="${due}"/>"#,
            "the priority: `next week` is not a priority",
        ),
        (
            r#"<userTask id="t" camunda:formKey="${due.x.y + 1}"/>"#,
            "the form key: `${due.x.y + 1}`",
        ),
    ] {
        let incident = open(task, r#"{"due": "next week"}"#).unwrap_err();
        assert!(incident.starts_with(what), "{incident}");
    }
}
