//! How often the work of a job is tried, and how long it rests between two tries, as the Java engines write it.

mod common;

use common::{BEGIN, Host, errors, load, load_with};
use tidegate_engine::CompileOptions;
use tidegate_model::effect::Job;
use tidegate_model::{CommandKind, Effect, Variables};

fn file(vendor: &str, task: &str) -> String {
    let task = task.replace("camunda:", &format!("{vendor}:"));
    format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"
 xmlns:camunda="http://camunda.org/schema/1.0/bpmn" xmlns:operaton="http://operaton.org/schema/1.0/bpmn"
 xmlns:flowable="http://flowable.org/bpmn" xmlns:activiti="http://activiti.org/bpmn" targetNamespace="urn:t">
<process id="p" isExecutable="true"><startEvent id="s"/>{task}<sequenceFlow id="f" sourceRef="s" targetRef="t"/></process></definitions>"#
    )
}

fn cycle(text: &str) -> String {
    format!(
        "<extensionElements><camunda:failedJobRetryTimeCycle>{text}</camunda:failedJobRetryTimeCycle></extensionElements>"
    )
}

fn external(text: &str) -> String {
    format!(
        r#"<serviceTask id="t" camunda:type="external" camunda:topic="x">{}</serviceTask>"#,
        cycle(text)
    )
}

fn host(vendor: &str, task: &str, variables: &str) -> Host {
    let options = CompileOptions {
        script_formats: vec!["javascript".to_owned()],
        delegates: [("a.B".to_owned(), "pay".to_owned())].into(),
        ..CompileOptions::default()
    };
    let compiled = load_with("p.bpmn", file(vendor, task).as_bytes(), &options);
    assert_eq!(errors(&compiled.diagnostics), [] as [&str; 0], "{task}");
    let mut host = Host::new(&compiled.definitions[0]);
    let variables = Variables::parse(variables).unwrap();
    let element = None;
    host.command(CommandKind::Start { element, variables }).unwrap();
    host
}

/// The job fails; it is offered again, and here it is, or nothing more is offered.
fn fail(host: &mut Host, retries: Option<u32>) -> Option<Job> {
    let job = host.jobs()[0].key;
    let failed = CommandKind::FailJob {
        job,
        message: "no answer".to_owned(),
        retries,
        retry_at: None,
    };
    let (_, effects) = host.command(failed).unwrap();
    effects.into_iter().find_map(|effect| match effect {
        Effect::RunJob(job) => Some(job),
        _ => None,
    })
}

/// The tries at the beginning, and how many minutes it rests after each failure.
fn rests(host: &mut Host) -> (u32, Vec<i64>) {
    let tries = host.jobs()[0].retries;
    let mut rests = Vec::new();
    while let Some(job) = fail(host, None) {
        let not_before = job.not_before.expect("it rests");
        rests.push(not_before.since(host.now) / 60_000);
        host.now = not_before;
    }
    let incidents: Vec<&str> = host
        .instance
        .incidents()
        .map(|(_, incident)| incident.code.as_str())
        .collect();
    assert_eq!(incidents, ["job-no-retries"]);
    (tries, rests)
}

#[test]
fn a_failed_job_rests_as_the_model_says() {
    for vendor in ["camunda", "operaton", "flowable", "activiti"] {
        for (text, tries, minutes) in [
            ("R3/PT10M", 3, vec![10, 10]),
            ("PT10M,PT17M,PT20M", 4, vec![10, 17, 20]),
            (" PT5M ", 2, vec![5]),
            ("${cycle}", 3, vec![7, 7]),
            ("=list", 3, vec![1, 2]),
        ] {
            let mut host = host(
                vendor,
                &external(text),
                r#"{"cycle": "R3/PT7M", "list": "PT1M, PT2M"}"#,
            );
            assert_eq!(rests(&mut host), (tries, minutes), "{vendor} {text}");
        }
    }
}

#[test]
fn whatever_is_done_by_a_job_rests_so() {
    for task in [
        format!(
            r#"<serviceTask id="t" camunda:class="a.B">{}</serviceTask>"#,
            cycle("R2/PT3M")
        ),
        format!(
            r#"<businessRuleTask id="t" camunda:decisionRef="d">{}</businessRuleTask>"#,
            cycle("R2/PT3M")
        ),
        format!(
            r#"<scriptTask id="t" scriptFormat="javascript">{}<script>1</script></scriptTask>"#,
            cycle("R2/PT3M")
        ),
        format!(
            r#"<sendTask id="t">{}</sendTask>"#,
            cycle("R2/PT3M").replace(
                "<extensionElements>",
                r#"<extensionElements><zeebe:taskDefinition type="x"/>"#
            )
        ),
    ] {
        assert_eq!(rests(&mut host("camunda", &task, "{}")), (2, vec![3]), "{task}");
    }
    // Each says one of the two: the tries of the one, and the rest of the other.
    let both = cycle("R9/PT3M").replace(
        "<extensionElements>",
        r#"<extensionElements><zeebe:taskDefinition type="x" retries="4"/>"#,
    );
    let both = format!(r#"<serviceTask id="t">{both}</serviceTask>"#);
    assert_eq!(rests(&mut host("camunda", &both, "{}")), (4, vec![3, 3, 3]));
}

#[test]
fn who_reports_the_failure_may_say_otherwise() {
    let mut host = host("camunda", &external("PT1M,PT2M"), "{}");
    let job = host.jobs()[0].key;
    let at = BEGIN.plus_ms(5_000);
    let failed = CommandKind::FailJob {
        job,
        message: "busy".to_owned(),
        retries: Some(2),
        retry_at: Some(at),
    };
    host.command(failed).unwrap();
    assert_eq!(host.jobs()[0].not_before, Some(at));
    // More tries than the model gave: as after the first failure. One left: as before the last try.
    assert_eq!(
        fail(&mut host, Some(7)).unwrap().not_before,
        Some(BEGIN.plus_ms(60_000))
    );
    assert_eq!(
        fail(&mut host, Some(1)).unwrap().not_before,
        Some(BEGIN.plus_ms(120_000))
    );
    // Where the model says nothing, it is tried at once.
    let plain = r#"<serviceTask id="t" camunda:type="external" camunda:topic="x"/>"#;
    let mut host = self::host("camunda", plain, "{}");
    assert_eq!(fail(&mut host, None).unwrap().not_before, None);
}

#[test]
fn a_text_that_is_no_cycle_is_refused_or_an_incident() {
    for text in ["three times", "R3", "3", "PT1M,,PT2M", "R3/PT1M,PT2M"] {
        let compiled = load("p.bpmn", file("camunda", &external(text)).as_bytes(), &[]);
        assert_eq!(errors(&compiled.diagnostics), ["job-retries-invalid"], "{text}");
        let told = compiled.diagnostics.iter().find(|told| told.is_error()).unwrap();
        assert!(told.hint.as_ref().unwrap().contains("R3/PT10M"), "{told}");
    }
    let mut host = host("camunda", &external("${cycle}"), r#"{"cycle": "R3/PT7M"}"#);
    host.command(CommandKind::SetVariables {
        scope: tidegate_model::ElementInstanceKey::ROOT,
        variables: Variables::parse(r#"{"cycle": "soon"}"#).unwrap(),
    })
    .unwrap();
    fail(&mut host, None);
    let (incident, state) = host.instance.incidents().next().expect("an incident");
    assert_eq!(state.code, "expression-failed");
    assert!(
        state.message.contains("`soon` is not an ISO 8601 duration"),
        "{}",
        state.message
    );
    assert_eq!(host.jobs().len(), 0);
    let retry = CommandKind::RetryIncident {
        incident,
        retries: None,
    };
    host.command(retry).unwrap();
    assert_eq!(host.jobs().len(), 1);
}
