//! Process definitions: taking them away, and what they start by themselves.

use super::{milliseconds, show};
use crate::args::{Call, Nothing, Unregister};
use crate::client::http::{Client, Failure};
use crate::client::print::{fields, list};

pub async fn unregister(call: Call<Unregister>) -> Result<(), Failure> {
    let request = call.request;
    let query = [
        ("instances", request.instances.word().to_owned()),
        ("waitMs", milliseconds(request.timeout).to_string()),
    ];
    let answer = Client::new(&call.connection)?
        .delete(&["process-definitions", &request.key], &query, request.timeout)
        .await?;
    show(call.connection.output, &answer, |value| {
        fields(
            value,
            [
                ("definition", "definitionKey"),
                ("state", "state"),
                ("cancelled", "cancelled"),
            ],
        );
    })
}

pub async fn starters(call: Call<Nothing>) -> Result<(), Failure> {
    let answer = Client::new(&call.connection)?.get(&["starters"], &[]).await?;
    let columns = [
        ("process", "processId"),
        ("version", "version"),
        ("start event", "startElementId"),
        ("kind", "kind"),
        ("trigger", "trigger"),
        ("definition", "key"),
    ];
    show(call.connection.output, &answer, |value| list(value, columns))
}
