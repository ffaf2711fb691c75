//! Decisions are deployed beside processes; a task calls the newest one, and a failing one is an incident that shows why.

mod support;

use std::time::Duration;

use support::{line, stand, stand_on, task};
use tidegate::api::Resource;
use tidegate::model::SubStatus;
use tidegate::store::Page;

fn discount(above: u32, rate: &str) -> Resource {
    let xml = format!(
        r##"<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" namespace="shop" name="shop" id="shop">
  <inputData id="total" name="total"/>
  <decision id="discount" name="Discount">
    <informationRequirement id="i"><requiredInput href="#total"/></informationRequirement>
    <decisionTable id="t" hitPolicy="UNIQUE">
      <input id="c"><inputExpression id="e"><text>total</text></inputExpression></input><output id="o"/>
      <rule id="high"><inputEntry id="h1"><text>&gt; {above}</text></inputEntry><outputEntry id="h2"><text>{rate}</text></outputEntry></rule>
      <rule id="low"><inputEntry id="l1"><text>&lt;= 1000</text></inputEntry><outputEntry id="l2"><text>0</text></outputEntry></rule>
    </decisionTable>
  </decision>
</definitions>"##
    );
    Resource {
        name: "shop.dmn".to_owned(),
        bytes: xml.into_bytes(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_calls_the_newest_decision_and_a_failing_one_shows_inputs_and_rules() {
    let stand = stand().await;
    let call = task(
        "decide",
        "decision",
        &[("decisionId", "discount"), ("resultVariable", "rate")],
    );
    stand.deploy(line("order", &[("decide", call)])).await;
    stand.deploy(discount(1000, "0.10")).await;
    let ended = stand.run("order", r#"{"total": 1500}"#).await;
    assert_eq!(ended.variables.unwrap().get("rate").unwrap().text(), "0.10");

    // Version 2 overlaps below 1000: two rules of a UNIQUE table match.
    let again = stand
        .runtime
        .deploy(vec![discount(100, "0.2")], None, "test")
        .await
        .unwrap();
    assert_eq!(again.definitions[0].version, 2);
    let hurt = stand.start("order", r#"{"total": 500}"#).await.instance;
    stand.until(hurt, |d| d.row.incident_count == 1).await;
    let incident = &stand
        .runtime
        .incidents(Default::default(), Page::first(10))
        .await
        .unwrap()[0];
    for part in ["discount", "total = 500", "1, 2"] {
        assert!(incident.message.contains(part), "{part}: {}", incident.message);
    }

    // Mended, and known again after a restart.
    stand.deploy(discount(1000, "0.3")).await;
    let next = stand_on(stand.store.clone(), stand.clock.clone(), |b| b).await;
    next.runtime
        .retry_incident(incident.key, None, "op")
        .await
        .unwrap();
    let ended = next.runtime.wait(hurt, Duration::from_secs(20)).await.unwrap();
    assert_eq!(ended.sub_status, SubStatus::Finished);
    assert_eq!(ended.variables.unwrap().get("rate").unwrap().text(), "0");
    let processes = next
        .runtime
        .definitions(Default::default(), Page::first(10))
        .await
        .unwrap();
    assert_eq!(
        processes.len(),
        4,
        "one process and three versions of the decision"
    );
}
