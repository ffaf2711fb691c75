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
    stand.run("p", "{}").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_166_a_file_in_which_nothing_can_run_says_so() {
    let pool = r#"<collaboration id="c"><participant id="a" name="Customer"/></collaboration>"#;
    let files = [
        (pool, "no-executable-process"),
        (
            r#"<process id="p" isExecutable="false"><startEvent id="s"/></process>"#,
            "no-executable-process",
        ),
        (r#"<process id="p" isExecutable="true"/>"#, "no-start"),
    ];
    for (body, code) in files {
        let found = deploy(&stand().await, "p.bpmn", &file(body)).await.unwrap_err();
        assert_eq!(codes(&found), [code]);
        assert!(found[0].hint.is_some());
    }
    // A pool without a process beside one that runs is no error.
    let both = format!(r#"{pool}<process id="p" isExecutable="true"><startEvent id="s"/></process>"#);
    let stand = stand().await;
    deploy(&stand, "p.bpmn", &file(&both)).await.unwrap();
    stand.run("p", "{}").await;
}
