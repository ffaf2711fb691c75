//! Signed bearer tokens of an OpenID Connect issuer.
//!
//! The issuer's keys are fetched when the first token comes, kept, and fetched again when they are old or a token
//! names a key that is not among them; at most once in a while and one request at a time. When the issuer cannot be
//! reached the keys that are known stay in use. Which algorithms count is this side's choice, never the token's.

mod keys;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, TokenData, Validation, decode, decode_header};
use serde_json::Value;

use super::{Identity, Permissions};
use keys::Keys;

/// The clocks of issuer and server may differ by this much.
const LEEWAY: Duration = Duration::from_secs(60);
/// The longest token that is looked at, in bytes.
const MAX_TOKEN: usize = 16 << 10;
/// The word of the claim of tenants that stands for all of them.
const ALL_TENANTS: &str = "*";
/// The most tenants of one caller that are looked at: each is a read of its own in a list.
const MAX_TENANTS: usize = 100;
/// The longest name of a caller that is kept, in characters.
const MAX_NAME: usize = 200;

/// Which tokens count and what they allow.
#[derive(Debug, Clone)]
pub struct OidcOptions {
    /// The `iss` of a token, exactly.
    pub issuer: String,
    /// One of these must be in a token's `aud`.
    pub audience: Vec<String>,
    /// Where the keys are; found through the issuer's discovery document if none.
    pub jwks_url: Option<String>,
    /// The algorithms that count; see [`OidcOptions::algorithm`].
    pub algorithms: Vec<Algorithm>,
    /// The claim that names the caller; a token without it is named by its `sub`.
    pub name_claim: String,
    /// The claim whose words are mapped, dots between nested names: a list of texts, or a text with spaces.
    pub permissions_claim: String,
    /// The claim that lists a caller's tenants, `*` for all of them. None: every caller knows all tenants. A token without
    /// the claim is bound to no tenant at all.
    pub tenants_claim: Option<String>,
    /// What each word of that claim allows; other words allow nothing.
    pub permissions: BTreeMap<String, Permissions>,
    /// An unknown key has the keys fetched again at most this often.
    pub refresh_interval: Duration,
    /// Keys older than this are fetched again.
    pub max_age: Duration,
}

impl OidcOptions {
    /// The default of [`OidcOptions::refresh_interval`].
    pub const REFRESH_INTERVAL: Duration = Duration::from_secs(30);
    /// The default of [`OidcOptions::max_age`]: a key that the issuer withdraws is gone within it.
    pub const MAX_AGE: Duration = Duration::from_secs(600);

    /// Options with the usual algorithms (RS256, PS256, ES256, EdDSA) and claims, and no permissions.
    pub fn new(issuer: &str, audience: Vec<String>) -> Self {
        Self {
            issuer: issuer.to_owned(),
            audience,
            jwks_url: None,
            algorithms: vec![
                Algorithm::RS256,
                Algorithm::PS256,
                Algorithm::ES256,
                Algorithm::EdDSA,
            ],
            name_claim: "preferred_username".to_owned(),
            permissions_claim: "roles".to_owned(),
            tenants_claim: None,
            permissions: BTreeMap::new(),
            refresh_interval: Self::REFRESH_INTERVAL,
            max_age: Self::MAX_AGE,
        }
    }

    /// An algorithm by its name.
    ///
    /// # Errors
    /// It is unknown, or signs with a shared secret: what a key set publishes must not make a token.
    pub fn algorithm(name: &str) -> Result<Algorithm, String> {
        match name.parse() {
            Ok(Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512) => Err(format!(
                "`{name}` signs with a shared secret; the keys of an issuer are public"
            )),
            Ok(algorithm) => Ok(algorithm),
            Err(_) => Err(format!(
                "`{name}` is no algorithm; there are RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA"
            )),
        }
    }
}

/// An issuer's tokens.
#[derive(Debug)]
pub struct Oidc {
    options: OidcOptions,
    keys: Keys,
}

impl Oidc {
    /// Nothing is fetched before the first token comes.
    ///
    /// # Errors
    /// What is wrong with the options: keys as in the configuration, and messages.
    pub fn new(options: OidcOptions) -> Result<Self, (&'static str, String)> {
        keys::check_url(&options.issuer).map_err(|message| ("issuer", message))?;
        if let Some(url) = &options.jwks_url {
            keys::check_url(url).map_err(|message| ("jwks-url", message))?;
        }
        if options.audience.is_empty() {
            return Err(("audience", "names nobody: say what the tokens are for".to_owned()));
        }
        if options.algorithms.is_empty() {
            return Err(("algorithms", "names none: no token would count".to_owned()));
        }
        let keys = Keys::new(&options).map_err(|message| ("issuer", message))?;
        Ok(Self { options, keys })
    }

    /// Whom a token stands for; none if it does not count. Cancel safe.
    pub(crate) async fn identify(&self, token: &str) -> Option<Identity> {
        if token.len() > MAX_TOKEN || token.matches('.').count() != 2 {
            return None;
        }
        match self.verify(token).await {
            Ok(identity) => Some(identity),
            Err(why) => {
                tracing::debug!(
                    issuer = self.options.issuer,
                    "a signed token does not count: {why}"
                );
                None
            }
        }
    }

    async fn verify(&self, token: &str) -> Result<Identity, String> {
        let header = decode_header(token).map_err(|error| error.to_string())?;
        if !self.options.algorithms.contains(&header.alg) {
            return Err(format!(
                "the algorithm {:?} is not among those that count",
                header.alg
            ));
        }
        let key = self.keys.find(header.kid.as_deref(), header.alg).await;
        let key = key.ok_or_else(|| format!("no key {:?} for {:?}", header.kid, header.alg))?;
        self.checked(token, &key, header.alg)
    }

    fn checked(&self, token: &str, key: &Jwk, algorithm: Algorithm) -> Result<Identity, String> {
        let key = DecodingKey::from_jwk(key).map_err(|error| error.to_string())?;
        let mut validation = Validation::new(algorithm);
        validation.leeway = LEEWAY.as_secs();
        validation.validate_nbf = true;
        validation.set_audience(&self.options.audience);
        validation.set_issuer(&[&self.options.issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        let TokenData { claims, .. } =
            decode::<Value>(token, &key, &validation).map_err(|error| error.to_string())?;
        self.identity(&claims)
    }

    fn identity(&self, claims: &Value) -> Result<Identity, String> {
        let named = claim(claims, &self.options.name_claim).and_then(Value::as_str);
        let name = named.or(claims["sub"].as_str()).filter(|name| !name.is_empty());
        let name: String = name.ok_or("it names nobody")?.chars().take(MAX_NAME).collect();
        let words = self::words(claims, &self.options.permissions_claim);
        let granted = words
            .iter()
            .filter_map(|word| self.options.permissions.get(*word));
        let tenants = self.options.tenants_claim.as_ref();
        let tenants = tenants.map(|name| self::words(claims, name));
        let is_bound = |tenants: &Vec<&str>| !tenants.contains(&ALL_TENANTS);
        let tenants = tenants.filter(is_bound).map(|tenants| {
            let tenants = tenants.into_iter().take(MAX_TENANTS);
            tenants.map(Arc::from).collect()
        });
        Ok(Identity {
            name: Arc::from(name),
            permissions: granted.fold(Permissions::NONE, |all, some| all.and(*some)),
            shell: None,
            tenants,
        })
    }
}

/// The words of a claim: a list of texts, or a text with spaces.
fn words<'a>(claims: &'a Value, name: &str) -> Vec<&'a str> {
    match claim(claims, name) {
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(words)) => words.split_ascii_whitespace().collect(),
        _ => Vec::new(),
    }
}

/// A claim by its name, or by names with dots between them.
fn claim<'a>(claims: &'a Value, name: &str) -> Option<&'a Value> {
    claims.get(name).or_else(|| {
        let mut names = name.split('.');
        names.try_fold(claims, |inside, name| inside.get(name))
    })
}
