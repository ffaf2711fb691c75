//! The keys of an issuer: fetched, kept, fetched again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use parking_lot::RwLock;
use reqwest::Url;
use serde_json::Value;
use tokio::time::Instant;

use super::OidcOptions;

/// An answer of the issuer comes within this.
const ANSWER: Duration = Duration::from_secs(5);
/// The largest document that is read, in bytes.
const MAX_DOCUMENT: usize = 1 << 20;

/// Keys and how to come by them.
#[derive(Debug)]
pub(super) struct Keys {
    issuer: String,
    jwks_url: Option<String>,
    refresh_interval: Duration,
    max_age: Duration,
    http: reqwest::Client,
    known: RwLock<Arc<Known>>,
    /// When keys were last asked for. Held while they are, so that there is one request at a time.
    asked_at: tokio::sync::Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Known {
    keys: Vec<Jwk>,
    fetched_at: Option<Instant>,
}

/// Https anywhere, http on this machine alone: who can change the keys on their way can make tokens.
pub(super) fn check_url(text: &str) -> Result<(), String> {
    let url: Url = text
        .parse()
        .map_err(|error| format!("`{text}` is no URL: {error}"))?;
    let host = url.host_str().unwrap_or_default();
    let address = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<std::net::IpAddr>();
    let is_here = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_here => Ok(()),
        _ => Err(format!(
            "`{text}` must be https (http is for this machine's own addresses)"
        )),
    }
}

impl Keys {
    pub(super) fn new(options: &OidcOptions) -> Result<Self, String> {
        let http = reqwest::Client::builder()
            .timeout(ANSWER)
            .redirect(reqwest::redirect::Policy::none())
            .build();
        let http = http.map_err(|error| format!("the system's certificates cannot be used: {error}"))?;
        Ok(Self {
            issuer: options.issuer.clone(),
            jwks_url: options.jwks_url.clone(),
            refresh_interval: options.refresh_interval,
            max_age: options.max_age,
            http,
            known: RwLock::default(),
            asked_at: tokio::sync::Mutex::new(None),
        })
    }

    /// The key that a token names, or the only one that fits it.
    pub(super) async fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Option<Jwk> {
        let known = self.known.read().clone();
        let is_old = known.fetched_at.is_none_or(|at| at.elapsed() > self.max_age);
        let found = known.find(kid, algorithm);
        if found.is_some() && !is_old {
            return found;
        }
        self.refresh(&known).await;
        let known = self.known.read().clone();
        known.find(kid, algorithm)
    }

    /// Fetches the keys unless somebody else has since `seen`, or they were asked for a moment ago.
    async fn refresh(&self, seen: &Known) {
        let mut asked_at = self.asked_at.lock().await;
        if self.known.read().fetched_at != seen.fetched_at
            || asked_at.is_some_and(|at| at.elapsed() < self.refresh_interval)
        {
            return;
        }
        *asked_at = Some(Instant::now());
        match self.fetch().await {
            Ok(keys) => {
                tracing::debug!(
                    issuer = self.issuer,
                    keys = keys.len(),
                    "fetched the issuer's keys"
                );
                let fetched_at = Some(Instant::now());
                *self.known.write() = Arc::new(Known { keys, fetched_at });
            }
            Err(why) => {
                tracing::warn!(
                    issuer = self.issuer,
                    "the issuer's keys could not be fetched, those known stay: {why}"
                );
            }
        }
    }

    async fn fetch(&self) -> Result<Vec<Jwk>, String> {
        let url = match &self.jwks_url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let document = self.get(&url).await?;
        let keys = document["keys"]
            .as_array()
            .ok_or_else(|| format!("{url} has no `keys`"))?;
        // A set may hold keys of kinds that this side does not know.
        let keys: Vec<Jwk> = keys
            .iter()
            .filter_map(|key| serde_json::from_value(key.clone()).ok())
            .collect();
        if keys.is_empty() {
            return Err(format!("{url} has no key that can be used"));
        }
        Ok(keys)
    }

    async fn discover(&self) -> Result<String, String> {
        let url = format!(
            "{}/.well-known/openid-configuration",
            self.issuer.trim_end_matches('/')
        );
        let document = self.get(&url).await?;
        if document["issuer"] != self.issuer.as_str() {
            return Err(format!("{url} speaks for the issuer {}", document["issuer"]));
        }
        let keys = document["jwks_uri"]
            .as_str()
            .ok_or_else(|| format!("{url} has no `jwks_uri`"))?;
        check_url(keys)?;
        Ok(keys.to_owned())
    }

    async fn get(&self, url: &str) -> Result<Value, String> {
        let failed = |error: reqwest::Error| format!("{url}: {error}");
        let response = self.http.get(url).send().await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(format!("{url} answered {}", response.status()));
        }
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(failed)?);
            if body.len() > MAX_DOCUMENT {
                return Err(format!("{url} is larger than {MAX_DOCUMENT} bytes"));
            }
        }
        serde_json::from_slice(&body).map_err(|error| format!("{url} is no JSON: {error}"))
    }
}

impl Known {
    fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Option<Jwk> {
        let mut fitting = self.keys.iter().filter(|key| fits(key, algorithm));
        match kid {
            Some(kid) => fitting
                .find(|key| key.common.key_id.as_deref() == Some(kid))
                .cloned(),
            None => match (fitting.next(), fitting.next()) {
                (Some(only), None) => Some(only.clone()),
                _ => None,
            },
        }
    }
}

fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let is_for_signing = !matches!(key.common.public_key_use, Some(PublicKeyUse::Encryption));
    let named = key
        .common
        .key_algorithm
        .is_none_or(|named| named == algorithm.into());
    let family = DecodingKey::from_jwk(key).is_ok_and(|key| key.family() == algorithm.family());
    is_for_signing && named && family
}
