//! Programs that embed Tidegate, one a file in `src/bin`. Each ends with exit code 0 when all went well.
//!
//! - `order-service`: a durable order process inside a program, with handlers, a message, and a restart.
//! - `own-source`: an activity and an ingress source of the program's own.
//! - `two-shells`: two shells, each with its own store and its own gate, inside an axum application.

use tidegate::api::Resource;

/// How long an example waits for anything.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// A process of an order: reserve the goods, wait for the payment, ship.
pub fn order_process() -> Resource {
    Resource {
        name: "order.bpmn".to_owned(),
        bytes: include_bytes!("../order.bpmn").to_vec(),
    }
}
