//! Deploying resources.

use axum::Json;
use axum::body::{Body as RawBody, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request, State};
use axum::http::HeaderMap;
use serde::Deserialize;
use tidegate::Error;
use tidegate::api::{Deployment, Resource};

use crate::auth::Tenants;
use crate::extract::{Actor, Query, Shell, name, required};
use crate::{App, Problem, body};

/// Files of one deployment at most.
const MAX_RESOURCES: usize = 100;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Parameters {
    name: Option<String>,
    tenant_id: Option<String>,
}

pub(super) async fn deploy(
    State(app): State<App>,
    shell: Shell,
    Actor(actor): Actor,
    tenants: Tenants,
    Query(parameters): Query<Parameters>,
    request: Request,
) -> Result<Json<Deployment>, Problem> {
    if shell.0.quiescence().is_draining() {
        return Err(shell.problem(Error::Draining));
    }
    let tenant = tenants.one(name("tenantId", parameters.tenant_id)?)?;
    let headers = request.headers().clone();
    let media = body::media_type(&headers).unwrap_or_default();
    let is_multipart = media == "multipart/form-data";
    if !is_multipart && !is_xml(&media) {
        return Err(body::wants(
            "`multipart/form-data` with parts `resources`, or one `application/xml` body",
        ));
    }
    let bytes = body::read(
        request.into_body(),
        app.options.max_deployment_bytes,
        app.options.body_timeout,
    )
    .await?;
    let resources = if is_multipart {
        parts(&headers, bytes).await?
    } else {
        let name = required(
            "name",
            parameters.name.unwrap_or_else(|| "process.bpmn".to_owned()),
        )?;
        vec![Resource {
            name,
            bytes: bytes.into(),
        }]
    };
    let deployment = shell.0.deploy(resources, tenant, &actor).await;
    deployment.map(Json).map_err(|error| shell.problem(error))
}

fn is_xml(media: &str) -> bool {
    matches!(media, "application/xml" | "text/xml" | "application/octet-stream") || media.ends_with("+xml")
}

async fn parts(headers: &HeaderMap, bytes: Bytes) -> Result<Vec<Resource>, Problem> {
    let malformed = |what: String| Problem::bad_request("malformed-multipart", what);
    let mut request = Request::new(RawBody::from(bytes));
    *request.headers_mut() = headers.clone();
    // The size was limited when the body was read.
    request.extensions_mut().insert(DefaultBodyLimit::disable());
    let multipart = Multipart::from_request(request, &()).await;
    let mut multipart = multipart.map_err(|error| malformed(error.body_text()))?;
    let mut resources: Vec<Resource> = Vec::new();
    while let Some(part) = multipart
        .next_field()
        .await
        .map_err(|error| malformed(error.body_text()))?
    {
        if part.name() != Some("resources") {
            let found = part
                .name()
                .unwrap_or_default()
                .chars()
                .take(60)
                .collect::<String>();
            return Err(Problem::bad_request(
                "unknown-part",
                format!("the part `{found}` is not known; every file goes into a part named `resources`"),
            ));
        }
        let unnamed = || format!("resource-{}.bpmn", resources.len() + 1);
        let file = required("filename", part.file_name().map_or_else(unnamed, str::to_owned))?;
        if resources.iter().any(|resource| resource.name == file) || resources.len() == MAX_RESOURCES {
            let detail =
                format!("a deployment has at most {MAX_RESOURCES} files, each name once; see `{file}`");
            return Err(Problem::bad_request("invalid-resources", detail));
        }
        let bytes = part.bytes().await.map_err(|error| malformed(error.body_text()))?;
        resources.push(Resource {
            name: file,
            bytes: bytes.into(),
        });
    }
    if resources.is_empty() {
        return Err(Problem::bad_request(
            "no-resources",
            "the deployment has no file: add a part `resources`",
        ));
    }
    Ok(resources)
}
