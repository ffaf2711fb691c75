//! RFC 9457 problem documents: the one form of every error on the wire.
//!
//! Handlers return a [`Problem`]; `finish` writes it, and turns whatever else ends as an error (an unknown route,
//! a wrong method, a panic) into one.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use serde::Serialize;
use serde_json::{Map, Value};

/// An error as clients see it.
#[derive(Debug, Clone)]
pub struct Problem(Box<Content>);

#[derive(Debug, Clone)]
struct Content {
    status: StatusCode,
    code: Cow<'static, str>,
    detail: String,
    members: Map<String, Value>,
    headers: HeaderMap,
}

impl Problem {
    /// A problem with its stable code (kebab-case) and what happened, where, and what to do.
    pub fn new(status: StatusCode, code: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Self(Box::new(Content {
            status,
            code: code.into(),
            detail: detail.into(),
            members: Map::new(),
            headers: HeaderMap::new(),
        }))
    }

    /// 400.
    pub fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// 404.
    pub fn not_found(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, detail)
    }

    /// 404: a shell that is not there, or that the caller may not know of.
    pub(crate) fn no_shell(name: &str) -> Self {
        const SHOWN: usize = 60;
        let name: String = name.chars().take(SHOWN).collect();
        Self::not_found("shell-not-found", format!("there is no shell `{name}`"))
    }

    /// 403: who asks is known and may not do this.
    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "permission-denied", detail)
    }

    pub(crate) fn no_tenant(name: &str) -> Self {
        const SHOWN: usize = 60;
        let name: String = name.chars().take(SHOWN).collect();
        Self::not_found("tenant-not-found", format!("there is no tenant `{name}`"))
    }

    /// 503 with a time to come back after.
    pub fn unavailable(
        code: impl Into<Cow<'static, str>>,
        detail: impl Into<String>,
        retry_after: u64,
    ) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail)
            .header(header::RETRY_AFTER, HeaderValue::from(retry_after))
    }

    /// 500: a bug or a failure whose details are for the log alone.
    pub fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal-error",
            "the server failed to answer this request; its log has the cause",
        )
    }

    /// Adds a member of its own to the document.
    #[must_use]
    pub fn member(mut self, name: &str, value: impl Serialize) -> Self {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        self.0.members.insert(name.to_owned(), value);
        self
    }

    /// Adds a header to the answer.
    #[must_use]
    pub fn header(mut self, name: header::HeaderName, value: HeaderValue) -> Self {
        self.0.headers.insert(name, value);
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.0.status
    }

    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    fn document(&self, instance: Option<&str>) -> Value {
        let mut document = Map::new();
        document.insert(
            "type".to_owned(),
            format!("urn:tidegate:problem:{}", self.0.code).into(),
        );
        document.insert("title".to_owned(), title(&self.0.code).into());
        document.insert("status".to_owned(), self.0.status.as_u16().into());
        document.insert("detail".to_owned(), self.0.detail.clone().into());
        document.insert("instance".to_owned(), instance.into());
        document.insert("code".to_owned(), self.0.code.as_ref().into());
        document.extend(self.0.members.clone());
        Value::Object(document)
    }

    fn write(self, instance: Option<&str>) -> Response {
        let body = self.document(instance).to_string();
        let mut response = (self.0.status, body).into_response();
        response.headers_mut().extend(self.0.headers.clone());
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        response.extensions_mut().insert(self);
        response
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.write(None)
    }
}

/// The code in words: `instance-not-found` is "Instance not found".
fn title(code: &str) -> String {
    let mut words = code.replace('-', " ");
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

/// Outermost layer: contains panics, names the request's path in problems, and leaves no error without a document.
pub(crate) async fn finish(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let method = request.method().clone();
    // A handler holds no lock and no half-written state across a panic: everything it touches is behind the
    // runtime's own containment.
    let mut response = match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            tracing::error!(%method, path, "a request handler panicked; the server goes on");
            Problem::internal().into_response()
        }
    };
    if response.status().is_client_error() || response.status().is_server_error() {
        response = as_problem(response, &method, &path);
    }
    let headers = response.headers_mut();
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

fn as_problem(mut response: Response, method: &Method, path: &str) -> Response {
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let mut written = problem.write(Some(path));
        keep_headers(response.headers(), written.headers_mut());
        return written;
    }
    let is_json = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|v| v == "application/json");
    if is_json {
        return response;
    }
    let mut written = foreign(response.status(), method, path).write(Some(path));
    keep_headers(response.headers(), written.headers_mut());
    written
}

/// What layers inside have added, for example `Connection` or `Allow`.
fn keep_headers(from: &HeaderMap, to: &mut HeaderMap) {
    for name in [header::CONNECTION, header::ALLOW] {
        if let Some(value) = from.get(&name) {
            to.insert(name, value.clone());
        }
    }
}

fn foreign(status: StatusCode, method: &Method, path: &str) -> Problem {
    match status {
        StatusCode::NOT_FOUND => Problem::new(
            status,
            "route-not-found",
            format!(
                "this server has no route `{path}`; its routes are in `openapi.json` under the API's base path"
            ),
        ),
        StatusCode::METHOD_NOT_ALLOWED => Problem::new(
            status,
            "method-not-allowed",
            format!("`{path}` does not take {method}; the `Allow` header says what it takes"),
        ),
        _ => {
            let reason = status.canonical_reason().unwrap_or("request refused");
            Problem::new(status, reason.to_ascii_lowercase().replace(' ', "-"), reason)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_the_codes_in_words() {
        assert_eq!(title("instance-not-found"), "Instance not found");
        assert_eq!(title(""), "");
    }

    #[tokio::test]
    async fn a_panic_is_a_problem_and_foreign_errors_are_too() {
        use axum::Router;
        use axum::routing::get;
        use tower::ServiceExt;

        async fn panics() {
            panic!("on purpose");
        }
        let router = Router::new()
            .route("/panics", get(panics))
            .layer(axum::middleware::from_fn(finish));
        for (method, path, status, code) in [
            ("GET", "/panics", 500, "internal-error"),
            ("GET", "/nowhere", 404, "route-not-found"),
            ("PUT", "/panics", 405, "method-not-allowed"),
        ] {
            let request = Request::builder()
                .method(method)
                .uri(path)
                .body(axum::body::Body::empty())
                .unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status().as_u16(), status, "{method} {path}");
            assert_eq!(response.headers()["content-type"], "application/problem+json");
            assert_eq!(response.headers().contains_key("allow"), status == 405);
            let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
            let document: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(
                (document["code"].as_str(), document["instance"].as_str()),
                (Some(code), Some(path))
            );
        }
    }

    #[test]
    fn own_members_stand_beside_the_standard_ones() {
        let problem = Problem::bad_request("unknown-field", "no field `x`").member("line", 3);
        let document = problem.document(Some("/api/v1/x"));
        let names: Vec<_> = document.as_object().unwrap().keys().collect();
        assert_eq!(
            names,
            ["type", "title", "status", "detail", "instance", "code", "line"]
        );
    }
}
