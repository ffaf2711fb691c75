//! Control of one instance, and why it does not move.

use serde_json::Value;

use super::instances::instance_fields;
use super::{body, milliseconds, show};
use crate::args::{Call, Cancel, KeyOnly, Release, Scope, Suspend, Timers};
use crate::client::http::{Client, Failure};
use crate::client::print::cell;
use crate::terminal;

pub async fn cancel(call: Call<Cancel>) -> Result<(), Failure> {
    let Cancel {
        key,
        reason,
        wait,
        patience,
        force,
    } = call.request;
    let request_body = body([
        ("reason", reason.map(Value::from)),
        ("waitMs", Some(milliseconds(wait))),
        ("patienceMs", patience.map(milliseconds)),
        ("force", force.then_some(Value::from(true))),
    ]);
    let path = ["process-instances", &key, "cancel"];
    let answer = Client::new(&call.connection)?
        .post(&path, &request_body, wait)
        .await?;
    show(call.connection.output, &answer, instance_fields)
}

pub async fn suspend(call: Call<Suspend>) -> Result<(), Failure> {
    let request = call.request;
    let scope = match request.scope {
        Scope::Tree => "tree",
        Scope::Alone => "self",
    };
    let timers = request.timers.map(|timers| match timers {
        Timers::KeepRunning => "keepRunning",
        Timers::StandStill => "standStill",
    });
    let request_body = body([
        ("reason", request.reason.map(Value::from)),
        ("scope", Some(scope.into())),
        ("timers", timers.map(Value::from)),
        ("now", request.now.then_some(Value::from(true))),
        ("waitMs", Some(milliseconds(request.wait))),
    ]);
    let path = ["process-instances", &request.key, "suspend"];
    let answer = Client::new(&call.connection)?
        .post(&path, &request_body, request.wait)
        .await?;
    show(call.connection.output, &answer, |value| {
        instance_fields(value);
        let suspension = &value["suspension"];
        let line = format!(
            "suspended     scope {}, timers {}, {} held",
            cell(suspension, "scope"),
            cell(suspension, "timers"),
            cell(suspension, "heldInstances")
        );
        terminal::line(&terminal::printable(&line));
        if suspension["isEffective"] != true {
            terminal::line("something still runs; the hold is effective when it has ended");
        }
    })
}

pub async fn release(call: Call<Release>) -> Result<(), Failure> {
    let request_body = body([("reason", call.request.reason.map(Value::from))]);
    let path = ["process-instances", &call.request.key, "resume"];
    let answer = Client::new(&call.connection)?
        .post(&path, &request_body, std::time::Duration::ZERO)
        .await?;
    show(call.connection.output, &answer, instance_fields)
}

pub async fn why(call: Call<KeyOnly>) -> Result<(), Failure> {
    let answer = Client::new(&call.connection)?
        .get(&["process-instances", &call.request.key, "why"], &[])
        .await?;
    show(call.connection.output, &answer, |value| {
        for reason in value["reasons"].as_array().into_iter().flatten() {
            let at = match reason["elementId"].as_str() {
                Some(element) => format!(" (at {element})"),
                None => String::new(),
            };
            let line = format!("{:<17}{}{at}", cell(reason, "kind"), cell(reason, "text"));
            terminal::line(&terminal::printable(&line));
        }
        if value["more"].as_u64().is_some_and(|more| more > 0) {
            terminal::line(&format!("(and {} more)", value["more"]));
        }
    })
}
