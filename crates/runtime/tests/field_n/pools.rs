//! Pools that only show something, and files in which nothing can run.

use crate::support::stand;
use crate::{codes, deploy, file};

#[tokio::test(flavor = "multi_thread")]
async fn case_165_a_pool_that_only_shows_does_not_keep_the_other_from_running() {
    let body = r#"<collaboration id="c"><participant id="ours" processRef="p"/><participant id="bank" name="Bank" processRef="q"/></collaboration>
        <process id="p" isExecutable="true"><startEvent id="s"/></process>
        <process id="q" isExecutable="false"><startEvent id="s2"/><choreographyTask id="ct"/><serviceTask id="x"/><sequenceFlow id="f" sourceRef="s2" targetRef="x"/></process>"#;
    let stand = stand().await;
    let deployed = deploy(&stand, "p.bpmn", &file(body)).await.unwrap();
    let ids: Vec<_> = deployed
        .definitions
        .iter()
        .map(|d| d.process_id.as_str())
        .collect();
    assert_eq!(ids, ["p"]);
    // What was passed over is named, with the reason and the place.
    let [passed_over] = deployed.warnings.as_slice() else {
        panic!("{:?}", deployed.warnings);
    };
    assert_eq!(passed_over.code, "not-executable");
    assert_eq!(passed_over.element_id.as_deref(), Some("q"));
    assert!(
        passed_over.message.contains("not executable") && passed_over.line == 3,
        "{passed_over}"
    );
    stand.run("p", "{}").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_166_a_file_in_which_nothing_can_run_says_so() {
    let pool = r#"<collaboration id="c"><participant id="a" name="Customer"/></collaboration>"#;
    let files = [
        (pool, "no-executable-process", None),
        (
            r#"<process id="p" isExecutable="false"><startEvent id="s"/></process>"#,
            "no-executable-process",
            Some("p"),
        ),
        (r#"<process id="p" isExecutable="true"/>"#, "no-start", Some("p")),
    ];
    for (body, code, element) in files {
        let found = deploy(&stand().await, "p.bpmn", &file(body)).await.unwrap_err();
        assert_eq!(codes(&found), [code]);
        assert!(found[0].hint.is_some() && found[0].line == 1 && found[0].column > 0);
        assert_eq!(found[0].element_id.as_deref(), element);
    }
    // A pool without a process beside one that runs is no error.
    let both = format!(r#"{pool}<process id="p" isExecutable="true"><startEvent id="s"/></process>"#);
    let stand = stand().await;
    deploy(&stand, "p.bpmn", &file(&both)).await.unwrap();
    stand.run("p", "{}").await;
}
