//! Messages, incidents and user tasks.

use std::time::Duration;

use serde_json::Value;

use super::{body, milliseconds, show, variables};
use crate::args::{Call, CompleteTask, Message, Retry};
use crate::client::http::{Client, Failure};
use crate::client::print::{fields, text};
use crate::terminal;

pub async fn message(call: Call<Message>) -> Result<(), Failure> {
    let request = call.request;
    let request_body = body([
        ("name", Some(request.name.into())),
        ("correlationKey", request.correlation_key.map(Value::from)),
        ("variables", variables(request.variables)),
        ("timeToLiveMs", request.time_to_live.map(milliseconds)),
    ]);
    let answer = Client::new(&call.connection)?
        .post(&["messages"], &request_body, Duration::ZERO)
        .await?;
    show(call.connection.output, &answer, |value| {
        fields(value, [("message", "messageKey")]);
        let takers: Vec<_> = value["deliveredTo"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect();
        match takers.as_slice() {
            [] => terminal::line("accepted: it waits for a taker"),
            takers => terminal::line(&format!("delivered to  {}", takers.join(", "))),
        }
    })
}

pub async fn retry(call: Call<Retry>) -> Result<(), Failure> {
    let request_body = body([("retries", call.request.retries.map(Value::from))]);
    let path = ["incidents", &call.request.key, "retry"];
    let answer = Client::new(&call.connection)?
        .post(&path, &request_body, Duration::ZERO)
        .await?;
    show(call.connection.output, &answer, advanced)
}

pub async fn complete_task(call: Call<CompleteTask>) -> Result<(), Failure> {
    let request_body = body([("variables", variables(call.request.variables))]);
    let path = ["user-tasks", &call.request.key, "complete"];
    let answer = Client::new(&call.connection)?
        .post(&path, &request_body, Duration::ZERO)
        .await?;
    show(call.connection.output, &answer, advanced)
}

pub(super) fn advanced(value: &Value) {
    terminal::line(if value["advanced"] == true {
        "done"
    } else {
        "accepted: it is durable and takes effect when the runtime takes new work again"
    });
}
