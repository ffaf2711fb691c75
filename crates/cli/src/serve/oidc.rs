//! The `[oidc]` table, checked.

use tidegate_server::auth::{Oidc, OidcOptions, Permissions};

use super::config::Wrong;
use super::settings::OidcTable;

/// The issuer that the table describes; none if something is wrong with it.
pub fn check(table: OidcTable, wrong: &mut Wrong) -> Option<Oidc> {
    let before = wrong.len();
    let mut options = OidcOptions::new(&table.issuer, table.audience);
    options.jwks_url = table.jwks_url;
    if let Some(names) = table.algorithms {
        options.algorithms.clear();
        for name in names {
            match OidcOptions::algorithm(&name) {
                Ok(algorithm) => options.algorithms.push(algorithm),
                Err(message) => wrong.push(("oidc.algorithms".to_owned(), message)),
            }
        }
    }
    for (word, names) in table.permissions {
        match Permissions::parse(names.iter().map(String::as_str)) {
            Ok(permissions) => {
                options.permissions.insert(word, permissions);
            }
            Err(message) => wrong.push((format!("oidc.permissions.{word}"), message)),
        }
    }
    options.tenants_claim = table.tenants_claim;
    options.name_claim = table.name_claim.unwrap_or(options.name_claim);
    options.permissions_claim = table.permissions_claim.unwrap_or(options.permissions_claim);
    if wrong.len() > before {
        return None;
    }
    match Oidc::new(options) {
        Ok(oidc) => Some(oidc),
        Err((key, message)) => {
            wrong.push((format!("oidc.{key}"), message));
            None
        }
    }
}
