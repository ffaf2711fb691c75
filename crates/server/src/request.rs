//! The id of a request: the caller's own, or a new one. It is in the answer, and in the audit of what it caused.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// A longer one is replaced.
const MAX_LENGTH: usize = 128;

/// Names the request in everything that it causes.
pub(crate) async fn name(request: Request, next: Next) -> Response {
    let given = request
        .headers()
        .get(HEADER)
        .and_then(|value| value.to_str().ok());
    let is_sound =
        |id: &&str| (1..=MAX_LENGTH).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic());
    let id = given
        .filter(is_sound)
        .map_or_else(|| uuid::Uuid::new_v4().simple().to_string(), str::to_owned);
    let mut response = tidegate::request::within(id.as_str(), next.run(request)).await;
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}
