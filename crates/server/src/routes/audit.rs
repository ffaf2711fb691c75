//! The audit: listed page by page, or exported whole as JSON lines.

use std::io;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::try_unfold;
use serde::Deserialize;
use serde_json::Value;
use tidegate::Runtime;
use tidegate::store::{AuditRow, Page};

use crate::Problem;
use crate::cursor::Paging;
use crate::extract::{Query, Shell};

/// Rows of an export that are read at a time.
const BATCH: usize = 500;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    limit: Option<usize>,
    after: Option<String>,
    format: Option<Format>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Format {
    Json,
    Jsonl,
}

pub(super) async fn list(shell: Shell, Query(query): Query<Parameters>) -> Result<Response, Problem> {
    if query.format == Some(Format::Jsonl) {
        if query.limit.is_some() || query.after.is_some() {
            let detail = "`format=jsonl` gives everything; leave out `limit` and `after`";
            return Err(Problem::bad_request("invalid-query", detail));
        }
        return export(&shell).await;
    }
    let paging = Paging::of(query.limit, query.after.as_deref())?;
    let rows = shell
        .0
        .audit(paging.page())
        .await
        .map_err(|error| shell.problem(error))?;
    Ok(paging.answer(rows, |row| row.key, view).into_response())
}

fn view(row: AuditRow) -> Value {
    let mut view = serde_json::to_value(row).unwrap_or_default();
    // Keys are decimal texts on the wire.
    view["key"] = view["key"].to_string().into();
    view
}

/// Newest first, one entry a line, up to what there is when the export begins. An export that cannot be read to its
/// end is cut off, so that nobody takes it for whole.
async fn export(shell: &Shell) -> Result<Response, Problem> {
    // The first batch is read here: a store that cannot be read is a problem, not an empty export.
    let first = lines(&shell.0, None)
        .await
        .map_err(|error| shell.problem(error))?;
    let runtime = shell.0.clone();
    let batches = try_unfold(Some(first), move |batch| {
        let runtime = runtime.clone();
        async move {
            let Some((text, last)) = batch else {
                return Ok(None);
            };
            let next = match last {
                Some(last) => Some(lines(&runtime, Some(last)).await.map_err(io::Error::other)?),
                None => None,
            };
            Ok::<_, io::Error>(Some((text, next)))
        }
    });
    let kind = HeaderValue::from_static("application/jsonl");
    Ok(([(header::CONTENT_TYPE, kind)], Body::from_stream(batches)).into_response())
}

/// A batch as text, and the key after which there may be more.
async fn lines(runtime: &Runtime, after: Option<u64>) -> Result<(Bytes, Option<u64>), tidegate::Error> {
    let page = Page { after, limit: BATCH };
    let rows = runtime.audit(page).await?;
    let last = rows.last().map(|row| row.key).filter(|_| rows.len() == BATCH);
    let text: String = rows.into_iter().map(|row| format!("{}\n", view(row))).collect();
    Ok((text.into(), last))
}
