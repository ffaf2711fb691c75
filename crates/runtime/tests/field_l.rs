//! What people met with tokens: joins, scopes, multi-instance, errors, compensation. Each test is named after its case.

mod support;

#[path = "field_l/compensation.rs"]
mod compensation;
#[path = "field_l/errors.rs"]
mod errors;
#[path = "field_l/gateways.rs"]
mod gateways;
#[path = "field_l/joins.rs"]
mod joins;
#[path = "field_l/many.rs"]
mod many;
