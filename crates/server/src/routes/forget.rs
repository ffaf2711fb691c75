//! Forgetting finished instances, and exporting instances with their journals.

use std::collections::BTreeSet;
use std::io;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::try_unfold;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate::Subject;
use tidegate::export::Export;
use tidegate::forget::{JournalFate, MOST};
use tidegate::model::InstanceKey;

use crate::auth::Tenants;
use crate::extract::{Actor, Query, Shell, to_the_end};
use crate::{Problem, body};

use super::instances::Filter;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Forget {
    instance_keys: Vec<InstanceKey>,
    #[serde(default)]
    keep_journal: bool,
}

/// All of them, or none.
pub(super) async fn forget(
    shell: Shell,
    Actor(actor): Actor,
    tenants: Tenants,
    body::Body(forget): body::Body<Forget>,
) -> Result<Json<Value>, Problem> {
    let named: BTreeSet<InstanceKey> = forget.instance_keys.into_iter().collect();
    // More than so many are refused below, before anything is looked at.
    if tenants.is_bound() && named.len() <= MOST {
        for key in &named {
            let subject = Subject::Instance(*key);
            let tenant = shell.0.tenant_of(subject).await;
            let tenant = tenant.map_err(|error| shell.problem(error))?;
            if !tenants.knows(&tenant) {
                return Err(shell.problem(subject.missing()));
            }
        }
    }
    let named = named.into_iter().collect();
    let journal = match forget.keep_journal {
        true => JournalFate::Kept,
        false => JournalFate::Dropped,
    };
    let runtime = shell.0.clone();
    let request = to_the_end(async move { runtime.forget(named, journal, &actor).await });
    let forgotten = request.await?.map_err(|error| shell.problem(error))?;
    Ok(Json(json!({ "forgotten": forgotten.instances })))
}

/// The instances that match with their journals, one JSON object a line. An export that cannot be read to its end is cut
/// off, so that nobody takes it for whole.
pub(super) async fn export(
    shell: Shell,
    tenants: Tenants,
    Query(filter): Query<Filter>,
) -> Result<Response, Problem> {
    let kind = [(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/jsonl"),
    )];
    let Some(mut filter) = filter.read()? else {
        return Ok((kind, Body::empty()).into_response());
    };
    filter.tenant = tenants.followed(filter.tenant)?;
    let mut export = shell.0.export(filter);
    // The first piece is read here: a store that cannot be read is a problem, not an empty export.
    let first = export.next().await.map_err(|error| shell.problem(error))?;
    let pieces = try_unfold(
        (first, export),
        async move |(piece, mut export): (Option<Vec<u8>>, Export)| {
            let Some(piece) = piece else {
                return Ok(None);
            };
            let next = export.next().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>(Some((Bytes::from(piece), (next, export))))
        },
    );
    Ok((kind, Body::from_stream(pieces)).into_response())
}
