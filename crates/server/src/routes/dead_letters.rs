//! Stimuli that failed again and again: looked at, and put back once.

use axum::Json;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate::model::StimulusKey;

use crate::Problem;
use crate::cursor::Paging;
use crate::extract::{Actor, Key, Query, Shell, to_the_end};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    limit: Option<usize>,
    after: Option<String>,
}

pub(super) async fn list(shell: Shell, Query(query): Query<Parameters>) -> Result<Json<Value>, Problem> {
    let paging = Paging::of(query.limit, query.after.as_deref())?;
    let rows = shell
        .0
        .dead_letters(paging.page())
        .await
        .map_err(|error| shell.problem(error))?;
    Ok(paging.answer(
        rows,
        |row| row.stimulus.key.get(),
        |row| {
            json!({
                "stimulusKey": row.stimulus.key,
                "domain": row.stimulus.domain,
                "source": row.stimulus.source,
                "acceptedAt": row.stimulus.accepted_at,
                "attempts": row.stimulus.attempts,
                "diedAt": row.died_at,
                "code": row.code,
                "message": row.error,
            })
        },
    ))
}

pub(super) async fn replay(
    shell: Shell,
    Actor(actor): Actor,
    Key(key): Key<StimulusKey>,
) -> Result<Json<Value>, Problem> {
    let runtime = shell.0.clone();
    let replayed = to_the_end(async move { runtime.replay_dead_letter(key, &actor).await }).await?;
    let stimulus = replayed.map_err(|error| shell.problem(error))?;
    Ok(Json(json!({ "accepted": true, "stimulusKey": stimulus })))
}
