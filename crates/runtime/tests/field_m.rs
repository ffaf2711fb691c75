//! What people met with messages, signals and event gateways. Each test is named after its case.

mod support;

#[path = "field_m/messages.rs"]
mod messages;
#[path = "field_m/races.rs"]
mod races;
#[path = "field_m/signals.rs"]
mod signals;
