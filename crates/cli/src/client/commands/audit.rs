//! The audit.

use super::show;
use crate::args::{Audit, Call};
use crate::client::http::{Client, Failure};
use crate::client::print::list;
use crate::terminal;

pub async fn audit(call: Call<Audit>) -> Result<(), Failure> {
    let client = Client::new(&call.connection)?;
    if call.request.export {
        let query = [("format", "jsonl".to_owned())];
        return client.stream(&["audit"], &query, terminal::raw).await;
    }
    let query = [("limit", call.request.limit.to_string())];
    let answer = client.get(&["audit"], &query).await?;
    let columns = [
        ("time", "time"),
        ("action", "action"),
        ("actor", "actor"),
        ("subject", "subject"),
        ("before", "before"),
        ("after", "after"),
        ("outcome", "outcome"),
        ("reason", "reason"),
    ];
    show(call.connection.output, &answer, |value| list(value, columns))
}
