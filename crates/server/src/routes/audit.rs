//! The audit.

use axum::Json;
use serde::Deserialize;
use serde_json::Value;

use crate::Problem;
use crate::cursor::Paging;
use crate::extract::{Query, Shell};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    limit: Option<usize>,
    after: Option<String>,
}

pub(super) async fn list(shell: Shell, Query(query): Query<Parameters>) -> Result<Json<Value>, Problem> {
    let paging = Paging::of(query.limit, query.after.as_deref())?;
    let rows = shell
        .0
        .audit(paging.page())
        .await
        .map_err(|error| shell.problem(error))?;
    let view = |row| {
        let mut view = serde_json::to_value(row).unwrap_or_default();
        // Keys are decimal texts on the wire.
        view["key"] = view["key"].to_string().into();
        view
    };
    Ok(paging.answer(rows, |row| row.key, view))
}
