//! Request bodies: bounded in size, depth and time, read strictly, refused with the place and what was expected.

use std::time::Duration;

use axum::body::{Body as RawBody, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::{App, Problem};

/// How deep the JSON of a request may be nested.
const MAX_DEPTH: usize = 100;

/// A JSON body.
pub(crate) struct Body<T>(pub(crate) T);

/// A JSON body that may be left out.
pub(crate) struct Optional<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let is_json = is_json(request.headers());
        let bytes = read(
            request.into_body(),
            app.options.max_body_bytes,
            app.options.body_timeout,
        )
        .await?;
        if !is_json {
            return Err(wants("`application/json`"));
        }
        parse(&bytes).map(Self)
    }
}

impl<T: DeserializeOwned + Default> FromRequest<App> for Optional<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let is_json = is_json(request.headers());
        let bytes = read(
            request.into_body(),
            app.options.max_body_bytes,
            app.options.body_timeout,
        )
        .await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        if !is_json {
            return Err(wants("`application/json`, or no body at all"));
        }
        parse(&bytes).map(Self)
    }
}

/// Reads a whole body of at most `limit` bytes within `time`.
pub(crate) async fn read(body: RawBody, limit: usize, time: Duration) -> Result<Bytes, Problem> {
    match tokio::time::timeout(time, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body-too-large",
            format!("the body is larger than {limit} bytes, the limit for this request"),
        )
        .member("limit", limit)),
        Ok(Err(error)) => Err(Problem::bad_request(
            "body-unreadable",
            format!("the body could not be read: {error}"),
        )),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "body-timeout",
            format!("the body did not arrive within {} s", time.as_secs()),
        )),
    }
}

/// The media type of a request, lower case, without parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(
        value
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase(),
    )
}

/// 415 with what is taken.
pub(crate) fn wants(types: &str) -> Problem {
    Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported-media-type",
        format!("this takes {types}; say so in `Content-Type`"),
    )
}

fn is_json(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|media| media == "application/json" || media.ends_with("+json"))
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if let Some(at) = too_deep(bytes) {
        let detail = format!("the JSON is nested deeper than {MAX_DEPTH} levels at byte {at}");
        return Err(Problem::bad_request("json-too-deep", detail));
    }
    // A list would be taken for the members of the object in their order.
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        let detail = "the body is not what this takes: expected a JSON object, and this is a list";
        return Err(Problem::bad_request("invalid-request", detail));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let code = match error.classify() {
            serde_json::error::Category::Data => "invalid-request",
            _ => "malformed-json",
        };
        Problem::bad_request(code, format!("the body is not what this takes: {error}"))
            .member("line", error.line())
            .member("column", error.column())
    })
}

/// Where the nesting passes the limit. Raw values are kept without being parsed, so that the parser's own limit
/// does not see them.
fn too_deep(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Some(at);
                }
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_texts() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert_eq!(too_deep(nested(MAX_DEPTH).as_bytes()), None);
        assert_eq!(too_deep(nested(MAX_DEPTH + 1).as_bytes()), Some(MAX_DEPTH));
        let text = format!(r#"{{"a": "\"{}"}}"#, "[".repeat(500));
        assert_eq!(too_deep(text.as_bytes()), None);
    }
}
