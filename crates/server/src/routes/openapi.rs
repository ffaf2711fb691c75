//! The description of the API.

use axum::http::{HeaderName, HeaderValue, header};

/// OpenAPI 3.1, written by hand; a test compares its paths with the table of routes.
const DOCUMENT: &str = include_str!("../../openapi.json");

/// It describes the product, not this server's state, and needs no token.
pub(super) async fn document() -> ([(HeaderName, HeaderValue); 1], &'static str) {
    (
        [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))],
        DOCUMENT,
    )
}
