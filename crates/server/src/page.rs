//! `GET /`: one small live page, without a build step. It is files and knows no state; everything that it shows it
//! asks of the API, with the token that its user types in.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::App;

const PAGE: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/live.css");
const SCRIPT: &str = include_str!("page/live.js");

/// Nothing from elsewhere, nothing inline, in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page and its two files; they need no token.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/", get(page))
        .route(
            "/live.css",
            get(|| async { file("text/css; charset=utf-8", STYLE.to_owned()) }),
        )
        .route(
            "/live.js",
            get(|| async { file("text/javascript; charset=utf-8", SCRIPT.to_owned()) }),
        )
}

async fn page(State(app): State<App>) -> Response {
    // The base path is checked to be plain text.
    file(
        "text/html; charset=utf-8",
        PAGE.replace("{{base}}", &app.options.base),
    )
}

fn file(kind: &'static str, text: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, text).into_response()
}
