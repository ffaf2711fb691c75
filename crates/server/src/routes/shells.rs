//! The shells of this host.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use tidegate::gate::Quiescence;

use crate::{App, Problem};

pub(super) async fn list(State(app): State<App>) -> Result<Json<Value>, Problem> {
    let mut items = Vec::new();
    for (name, runtime) in app.host.shells() {
        let chip = chip(runtime.quiescence());
        let status = runtime.status().await;
        // A shell whose store cannot be read is listed all the same.
        let counts = status.ok().map(|status| {
            json!({
                "generationId": status.state.generation_id,
                "activeExecutionCycleCount": status.active_execution_cycle_count,
                "stimulusQueueDepth": status.stimulus_queue.depth,
                "interruptedInstanceCount": status.interrupted_instance_count,
            })
        });
        let mut item =
            json!({ "shellId": name, "status": if counts.is_some() { chip } else { "Unavailable" } });
        for field in [
            "generationId",
            "activeExecutionCycleCount",
            "stimulusQueueDepth",
            "interruptedInstanceCount",
        ] {
            item[field] = counts
                .as_ref()
                .map_or(Value::Null, |counts| counts[field].clone());
        }
        items.push(item);
    }
    Ok(Json(json!({ "items": items, "next": null })))
}

/// The word for an operator's chip.
fn chip(quiescence: Quiescence) -> &'static str {
    match (quiescence.is_draining(), quiescence.is_paused()) {
        (true, _) => "Draining",
        (false, true) => "Paused",
        (false, false) => "AcceptingWork",
    }
}
