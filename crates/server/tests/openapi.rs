//! The description of the API and the table of routes say the same.

use std::collections::BTreeSet;

use serde_json::Value;

#[test]
fn the_description_has_every_route_and_no_other() {
    let document: Value = serde_json::from_str(include_str!("../openapi.json")).unwrap();
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item
            .as_object()
            .unwrap()
            .iter()
            .filter(|(method, _)| *method != "parameters")
        {
            described.insert((
                path.clone(),
                method.to_ascii_uppercase(),
                operation["description"].to_string(),
            ));
        }
    }
    let needs = |name: &str| Value::from(format!("Needs the permission `{name}`.")).to_string();
    let routed: BTreeSet<_> = tidegate_server::routes::table()
        .iter()
        .map(|route| {
            (
                route.path.to_owned(),
                route.method.to_string(),
                needs(route.permission.name()),
            )
        })
        .collect();
    let missing: Vec<_> = routed.iter().filter(|route| !described.contains(route)).collect();
    let stale: Vec<_> = described.iter().filter(|route| !routed.contains(route)).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "not described: {missing:?}; not routed: {stale:?}"
    );
}

#[test]
fn every_reference_leads_somewhere() {
    let document: Value = serde_json::from_str(include_str!("../openapi.json")).unwrap();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}

fn collect<'a>(value: &'a Value, references: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            references.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|member| collect(member, references));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
