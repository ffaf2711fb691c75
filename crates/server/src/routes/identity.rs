//! Who asks, as the server sees it: for interfaces that offer only what may be done.

use axum::Json;
use serde_json::{Value, json};

use crate::extract::Caller;

pub(super) async fn show(Caller(caller): Caller) -> Json<Value> {
    Json(json!({
        "name": &*caller.name,
        "shell": caller.shell.as_deref(),
        "tenants": caller.tenants.as_deref().map(|tenants| tenants.iter().map(|tenant| &**tenant).collect::<Vec<_>>()),
        "permissions": caller.permissions.names(),
    }))
}
