//! Multi-instance: over nothing, over a lot.

use tidegate::model::Variables;

use crate::support::model::{model, work};
use crate::support::stand;

fn over(items: &str, sequential: bool, more: &str) -> String {
    format!(
        r#"<multiInstanceLoopCharacteristics isSequential="{sequential}"><extensionElements><zeebe:loopCharacteristics inputCollection="={items}" inputElement="item" outputCollection="out" outputElement="=item"/></extensionElements>{more}</multiInstanceLoopCharacteristics>"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn case_142_multi_instance_over_nothing_is_the_same_for_every_activity_and_order() {
    let activities = [
        ("task", ""),
        ("subProcess", r#"<startEvent id="s1"/>"#),
        (
            "callActivity",
            r#"<extensionElements><zeebe:calledElement processId="called"/></extensionElements>"#,
        ),
    ];
    for (activity, inside) in activities {
        for sequential in [false, true] {
            for (given, start) in [
                ("empty", r#"{"items": []}"#),
                ("null", r#"{"items": null}"#),
                ("missing", "{}"),
            ] {
                let case = format!("{activity}, sequential {sequential}, {given}");
                let stand = stand().await;
                stand
                    .deploy(model("called", "", r#"<startEvent id="s"/>"#, ""))
                    .await;
                let (before, after) = match activity {
                    "subProcess" => ("", inside),
                    _ => (inside, ""),
                };
                let body = format!(
                    r#"<startEvent id="s"/><{activity} id="many">{before}{}{after}</{activity}><endEvent id="e"/>"#,
                    over("items", sequential, "")
                );
                stand.deploy(model("p", "", &body, "s>many>e")).await;
                let instance = stand.start("p", start).await.instance;
                if given != "empty" {
                    let incident = stand.incident().await;
                    assert_eq!(incident.element_id.as_deref(), Some("many"), "{case}");
                    let cured = Variables::parse(r#"{"items": [7]}"#).unwrap();
                    stand.runtime.set_variables(instance, cured, "op").await.unwrap();
                    stand
                        .runtime
                        .retry_incident(incident.key, None, "op")
                        .await
                        .unwrap();
                }
                let out = stand.finished(instance).await.variables.unwrap();
                let expected = if given == "empty" { "[]" } else { "[7]" };
                assert_eq!(out.get("out").map(|value| value.text()), Some(expected), "{case}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_144_a_large_parallel_multi_instance_completes_after_the_last_of_its_children() {
    const ITEMS: usize = 50_000;
    let stand = stand().await;
    // True only while not all of them are counted.
    let condition = format!("<completionCondition>=numberOfInstances &lt; {ITEMS}</completionCondition>");
    let body = format!(
        r#"<startEvent id="s"/><task id="many">{}</task><endEvent id="e"/>"#,
        over(&format!("for i in 1..{ITEMS} return i"), false, &condition)
    );
    stand.deploy(model("p", "", &body, "s>many>e")).await;
    let instance = stand.start("p", "{}").await.instance;
    let out = stand.finished(instance).await.variables.unwrap();
    let out = out.get("out").expect("the results").text().to_owned();
    assert_eq!(out.matches(',').count() + 1, ITEMS);
    assert!(out.starts_with("[1,2,") && out.ends_with(",50000]"));
    assert_eq!(stand.times(instance, "ElementCompleted e").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_that_holds_ends_what_is_left_of_a_multi_instance() {
    let stand = stand().await;
    let condition = "<completionCondition>=numberOfCompletedInstances = 2</completionCondition>";
    let activity = work("many").replace(
        "</serviceTask>",
        &format!("{}</serviceTask>", over("[1,2,3]", false, condition)),
    );
    let body = format!(r#"<startEvent id="s"/>{activity}<endEvent id="e"/>"#);
    stand.deploy(model("p", "", &body, "s>many>e")).await;
    let instance = stand.start("p", "{}").await.instance;
    stand.complete("many", "{}").await;
    stand.complete("many", "{}").await;
    stand.finished(instance).await;
}
