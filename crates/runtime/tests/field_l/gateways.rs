//! The default flow, and no flow at all.

use tidegate::model::Variables;

use crate::support::model::{flow_if, flows, model};
use crate::support::stand;

#[tokio::test(flavor = "multi_thread")]
async fn case_149_the_default_flow_means_the_same_wherever_it_stands() {
    for position in 0..3 {
        for condition in [None, Some("=true"), Some(r#"=n + "text" > 1"#)] {
            let default = condition.map_or_else(|| flows("g>d"), |condition| flow_if("g", "d", condition));
            let mut outgoing = vec![flow_if("g", "a", "=n=1"), flow_if("g", "b", "=n=2")];
            outgoing.insert(position, default);
            let body = format!(
                r#"<startEvent id="s"/><exclusiveGateway id="g" default="g-d"/><endEvent id="a"/><endEvent id="b"/><endEvent id="d"/>{}"#,
                outgoing.concat()
            );
            let stand = stand().await;
            stand.deploy(model("p", "", &body, "s>g")).await;
            for (n, taken) in [(0, "d"), (1, "a"), (2, "b")] {
                let instance = stand.start("p", &format!(r#"{{"n": {n}}}"#)).await.instance;
                stand.finished(instance).await;
                for end in ["a", "b", "d"] {
                    let times = stand.times(instance, &format!("ElementCompleted {end}")).await;
                    let expected = usize::from(end == taken);
                    assert_eq!(
                        times, expected,
                        "default at {position} with {condition:?}, n = {n}: {end}"
                    );
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_150_a_gateway_without_a_way_out_is_an_incident_that_can_be_resolved() {
    // The condition, the start variables, and what the incident must tell of the value that it saw.
    let cases = [
        ("=amount > 5", r#"{"amount": 1}"#, "amount = 1"),
        ("=amount > 5", "{}", "amount = undefined"),
        ("=amount > 5", r#"{"amount": null}"#, "amount = null"),
        ("=amount > 5", r#"{"amount": "many"}"#, "amount = \"many\""),
        ("=amount", r#"{"amount": 1}"#, "amount = 1"),
        ("=amount", r#"{"amount": null}"#, "amount = null"),
        ("${amount > 5}", r#"{"amount": 1}"#, "amount = 1"),
        ("${amount > 5}", "{}", "amount = undefined"),
        ("${amount}", r#"{"amount": "many"}"#, "amount = \"many\""),
    ];
    let gateways = ["exclusiveGateway", "inclusiveGateway", "complexGateway"];
    for (gateway, (condition, start, saw)) in gateways
        .into_iter()
        .flat_map(|gateway| cases.map(|case| (gateway, case)))
    {
        let stand = stand().await;
        let body = format!(
            r#"<startEvent id="s"/><{gateway} id="g"/><endEvent id="e"/>{}"#,
            flow_if("g", "e", condition)
        );
        stand.deploy(model("p", "", &body, "s>g")).await;
        let instance = stand.start("p", start).await.instance;
        let incident = stand.incident().await;
        assert_eq!(incident.element_id.as_deref(), Some("g"));
        let bare = condition.trim_start_matches('=');
        for part in ["`g`", "flow `g-e`", bare, saw] {
            assert!(
                incident.message.contains(part),
                "{gateway} {condition} {start}: {}",
                incident.message
            );
        }
        let cured = if condition.contains('>') {
            r#"{"amount": 6}"#
        } else {
            r#"{"amount": true}"#
        };
        let cured = Variables::parse(cured).unwrap();
        stand.runtime.set_variables(instance, cured, "op").await.unwrap();
        stand
            .runtime
            .retry_incident(incident.key, None, "op")
            .await
            .unwrap();
        stand.finished(instance).await;
        assert_eq!(stand.times(instance, "ElementCompleted e").await, 1);
    }
}
