//! Signed tokens of an issuer, whose keys come from a server of the test, made when it runs.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use axum::Json;
use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use common::{TOKEN, server_with};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tidegate::Options;
use tidegate_server::auth::{Oidc, OidcOptions, Permissions};
use tidegate_server::{ApiOptions, Auth};

/// A key and its public half.
struct Key {
    id: String,
    private: EncodingKey,
    public: Value,
}

fn key(id: &str) -> Key {
    let random = aws_lc_rs::rand::SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let private = EncodingKey::from_ec_der(document.as_ref());
    let mut jwk = Jwk::from_encoding_key(&private, Algorithm::ES256).unwrap();
    jwk.common.key_id = Some(id.to_owned());
    Key {
        id: id.to_owned(),
        private,
        public: serde_json::to_value(jwk).unwrap(),
    }
}

/// An issuer: what it publishes, whether it answers, and how often it was asked for keys.
#[derive(Clone)]
struct Issuer {
    url: String,
    keys: Arc<Mutex<Vec<Value>>>,
    is_down: Arc<Mutex<bool>>,
    asked: Arc<AtomicU64>,
}

async fn issuer() -> Issuer {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = Issuer {
        url: format!("http://{}", listener.local_addr().unwrap()),
        keys: Arc::default(),
        is_down: Arc::default(),
        asked: Arc::default(),
    };
    let (discovery, keys) = (issuer.clone(), issuer.clone());
    let router = Router::new()
        .route(
            "/.well-known/openid-configuration",
            get(async move || {
                Json(json!({ "issuer": discovery.url, "jwks_uri": format!("{}/keys", discovery.url) }))
            }),
        )
        .route("/keys", get(async move || keys.answer()));
    tokio::spawn(async move { axum::serve(listener, router).await });
    issuer
}

impl Issuer {
    fn answer(&self) -> Response {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if *self.is_down.lock() {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
        let mut keys = self.keys.lock().clone();
        keys.push(json!({ "kty": "of another world", "kid": "strange" }));
        Json(json!({ "keys": keys })).into_response()
    }

    fn publish(&self, key: &Key) {
        self.keys.lock().push(key.public.clone());
    }

    fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }

    fn options(&self) -> OidcOptions {
        let mut options = OidcOptions::new(&self.url, vec!["tidegate".to_owned()]);
        options.permissions_claim = "realm.roles".to_owned();
        let view = Permissions::parse(["workflows/runtime:view"]).unwrap();
        let pause = Permissions::parse(["workflows/runtime:pause"]).unwrap();
        options.permissions.insert("viewer".to_owned(), view);
        options.permissions.insert("operator".to_owned(), pause);
        options
    }

    /// What a good token says; the caller changes some of it.
    fn claims(&self) -> Value {
        let now = get_current_timestamp();
        json!({
            "iss": self.url, "aud": ["tidegate"], "sub": "u-1", "preferred_username": "ada",
            "exp": now + 300, "nbf": now - 10, "realm": { "roles": ["viewer", "unheard-of"] },
        })
    }
}

fn sign(key: &Key, claims: &Value) -> String {
    let mut header = Header::new(Algorithm::ES256);
    header.kid = Some(key.id.clone());
    encode(&header, claims, &key.private).unwrap()
}

async fn server(options: OidcOptions) -> common::Server {
    let auth = Auth::single(TOKEN).with_oidc(Some(Oidc::new(options).unwrap()));
    server_with(Options::default(), auth, ApiOptions::default()).await
}

async fn status_of(server: &common::Server, token: &str) -> u16 {
    asked(server, token, "status").await
}

async fn asked(server: &common::Server, token: &str, what: &str) -> u16 {
    let url = format!("{}/api/v1/admin/workflow-runtime/{what}", server.url);
    server
        .http
        .get(url)
        .bearer_auth(token)
        .send()
        .await
        .unwrap()
        .status()
        .as_u16()
}

#[tokio::test]
async fn a_signed_token_stands_beside_static_ones_and_its_roles_are_mapped() {
    let issuer = issuer().await;
    let key = key("one");
    issuer.publish(&key);
    let server = server(issuer.options()).await;
    assert_eq!(status_of(&server, TOKEN).await, 200);
    assert_eq!(issuer.asked(), 0, "nothing is fetched before it is needed");
    let viewer = sign(&key, &issuer.claims());
    assert_eq!(status_of(&server, &viewer).await, 200);
    let url = format!("{}/api/v1/admin/workflow-runtime/pause", server.url);
    let pause = |token: &str| common::answer(server.http.post(&url).bearer_auth(token));
    assert_eq!(pause(&viewer).await.0, 403);
    let mut claims = issuer.claims();
    claims["realm"]["roles"] = json!(["viewer", "operator"]);
    let (status, paused) = pause(&sign(&key, &claims)).await;
    assert_eq!(
        (status.as_u16(), &paused["state"]["pauseRequestedBy"]),
        (200, &json!("ada"))
    );
    claims["realm"] = json!({ "roles": "nothing known" });
    assert_eq!(
        status_of(&server, &sign(&key, &claims)).await,
        403,
        "known, without permissions"
    );
    assert_eq!(issuer.asked(), 1, "the keys are kept");
}

#[tokio::test]
async fn case_192_the_tenants_of_a_signed_token_come_from_its_claim() {
    let issuer = issuer().await;
    let key = key("one");
    issuer.publish(&key);
    let mut options = issuer.options();
    options.tenants_claim = Some("realm.tenants".to_owned());
    let server = server(options).await;
    let tenants = async |tenants: Value| {
        let mut claims = issuer.claims();
        claims["realm"]["tenants"] = tenants;
        let token = sign(&key, &claims);
        let url = format!("{}/api/v1/identity", server.url);
        let (_, identity) = common::answer(server.http.get(url).bearer_auth(&token)).await;
        // The state is for whoever has a tenant, the whole for who is bound to none.
        let state = status_of(&server, &token).await;
        let whole = asked(&server, &token, "drain-plan").await;
        (identity["tenants"].clone(), state, whole)
    };
    assert_eq!(tenants(json!(["a", "b"])).await, (json!(["a", "b"]), 200, 403));
    assert_eq!(tenants(json!("a b")).await, (json!(["a", "b"]), 200, 403));
    assert_eq!(
        tenants(json!(["a", "*"])).await,
        (json!(null), 200, 200),
        "all of them"
    );
    // A token that says nothing of tenants knows none.
    for nothing in [json!(null), json!(7), json!([]), json!([7])] {
        assert_eq!(tenants(nothing.clone()).await, (json!([]), 403, 403), "{nothing}");
    }
}

#[tokio::test]
async fn every_check_of_a_token_can_fail() {
    let issuer = issuer().await;
    let (own, foreign) = (key("one"), key("one"));
    issuer.publish(&own);
    let server = server(issuer.options()).await;
    let now = get_current_timestamp();
    let with = |name: &str, value: Value| {
        let mut claims = issuer.claims();
        claims[name] = value;
        sign(&own, &claims)
    };
    let without = |name: &str| {
        let mut claims = issuer.claims();
        claims.as_object_mut().unwrap().remove(name);
        sign(&own, &claims)
    };
    assert_eq!(
        status_of(&server, &with("exp", json!(now - 30))).await,
        200,
        "within the leeway"
    );
    assert_eq!(
        status_of(&server, &with("nbf", json!(now + 30))).await,
        200,
        "within the leeway"
    );
    let shared = EncodingKey::from_secret(own.public["x"].as_str().unwrap().as_bytes()).unwrap();
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some("one".to_owned());
    let good = sign(&own, &issuer.claims());
    let (signed, _) = good.rsplit_once('.').unwrap();
    for (why, token) in [
        ("expired", with("exp", json!(now - 90))),
        ("not yet valid", with("nbf", json!(now + 90))),
        ("for somebody else", with("aud", json!("another"))),
        ("of another issuer", with("iss", json!("http://127.0.0.1:1"))),
        ("without an end", without("exp")),
        ("for nobody", without("aud")),
        ("of nobody", without("iss")),
        ("signed by another key", sign(&foreign, &issuer.claims())),
        (
            "signed with a shared secret",
            encode(&header, &issuer.claims(), &shared).unwrap(),
        ),
        ("not signed", format!("{signed}.")),
        ("none", "a.b.c".to_owned()),
    ] {
        assert_eq!(status_of(&server, &token).await, 401, "{why}");
    }
    let mut strict = issuer.options();
    strict.algorithms = vec![Algorithm::RS256];
    let server = self::server(strict).await;
    assert_eq!(
        status_of(&server, &good).await,
        401,
        "an algorithm that does not count"
    );
}

#[tokio::test]
async fn an_unknown_key_has_the_keys_fetched_again_but_not_at_every_token() {
    let issuer = issuer().await;
    let (first, second, third) = (key("one"), key("two"), key("three"));
    issuer.publish(&first);
    let mut options = issuer.options();
    options.refresh_interval = Duration::ZERO;
    let eager = server(options).await;
    assert_eq!(status_of(&eager, &sign(&first, &issuer.claims())).await, 200);
    issuer.publish(&second);
    assert_eq!(
        status_of(&eager, &sign(&second, &issuer.claims())).await,
        200,
        "rotated"
    );
    assert_eq!(issuer.asked(), 2);
    *issuer.is_down.lock() = true;
    assert_eq!(status_of(&eager, &sign(&third, &issuer.claims())).await, 401);
    assert_eq!(
        status_of(&eager, &sign(&first, &issuer.claims())).await,
        200,
        "known keys stay in use"
    );
    *issuer.is_down.lock() = false;

    let patient = server(issuer.options()).await;
    let before = issuer.asked();
    assert_eq!(status_of(&patient, &sign(&first, &issuer.claims())).await, 200);
    issuer.publish(&third);
    for _ in 0..5 {
        assert_eq!(status_of(&patient, &sign(&third, &issuer.claims())).await, 401);
    }
    assert_eq!(issuer.asked(), before + 1, "at most once in the interval");
}

#[tokio::test]
async fn many_tokens_at_once_fetch_the_keys_once() {
    let issuer = issuer().await;
    let key = key("one");
    issuer.publish(&key);
    let mut options = issuer.options();
    options.refresh_interval = Duration::ZERO;
    let server = server(options).await;
    let token = sign(&key, &issuer.claims());
    let all = futures_util::future::join_all((0..50).map(|_| status_of(&server, &token))).await;
    assert!(all.iter().all(|status| *status == 200), "{all:?}");
    assert_eq!(issuer.asked(), 1);
}

#[tokio::test]
async fn old_keys_are_fetched_again_and_withdrawn_ones_are_gone() {
    let issuer = issuer().await;
    let (first, second) = (key("one"), key("two"));
    issuer.publish(&first);
    let mut options = issuer.options();
    (options.refresh_interval, options.max_age) = (Duration::ZERO, Duration::ZERO);
    let server = server(options).await;
    assert_eq!(status_of(&server, &sign(&first, &issuer.claims())).await, 200);
    *issuer.keys.lock() = vec![second.public.clone()];
    assert_eq!(status_of(&server, &sign(&first, &issuer.claims())).await, 401);
    assert_eq!(status_of(&server, &sign(&second, &issuer.claims())).await, 200);
}

#[test]
fn keys_are_not_fetched_over_an_open_wire() {
    let options = |issuer: &str| OidcOptions::new(issuer, vec!["tidegate".to_owned()]);
    assert_eq!(
        Oidc::new(options("http://login.example")).unwrap_err().0,
        "issuer"
    );
    assert_eq!(Oidc::new(options("not a url")).unwrap_err().0, "issuer");
    let mut with_keys = options("https://login.example");
    with_keys.jwks_url = Some("http://login.example/keys".to_owned());
    assert_eq!(Oidc::new(with_keys).unwrap_err().0, "jwks-url");
    assert_eq!(
        Oidc::new(OidcOptions::new("https://login.example", vec![]))
            .unwrap_err()
            .0,
        "audience"
    );
    assert!(
        OidcOptions::algorithm("HS256")
            .unwrap_err()
            .contains("shared secret")
    );
    assert_eq!(OidcOptions::algorithm("ES384"), Ok(Algorithm::ES384));
}
