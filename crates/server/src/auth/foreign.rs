//! Pages of other origins, kept away from a server without authentication.

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header, uri::Authority};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::{App, Problem};

/// Without authentication, a page in the operator's own browser must not be able to reach the loopback address:
/// neither under a foreign name (DNS rebinding) nor from a foreign origin.
pub(crate) async fn refuse_foreign_pages(State(app): State<App>, request: Request, next: Next) -> Response {
    if app.auth.is_open() && is_foreign(&request) {
        return Problem::new(
            StatusCode::FORBIDDEN,
            "foreign-origin",
            "this server runs without authentication and answers only to `localhost` and loopback addresses, \
             and to no page of another origin",
        )
        .into_response();
    }
    next.run(request).await
}

fn is_foreign(request: &Request) -> bool {
    let text = |name| {
        request
            .headers()
            .get(name)
            .map(|v: &HeaderValue| v.to_str().unwrap_or("?"))
    };
    let host = text(header::HOST).or_else(|| request.uri().authority().map(Authority::as_str));
    let Some(host) = host else { return false };
    let foreign_origin = text(header::ORIGIN).is_some_and(|origin| origin != format!("http://{host}"));
    foreign_origin || !is_loopback(host)
}

fn is_loopback(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_names_are_told_from_others() {
        for host in ["localhost:8088", "127.0.0.1", "[::1]:8088", "LOCALHOST"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["evil.example:8088", "10.0.0.1", "127.0.0.1.evil.example", ""] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
