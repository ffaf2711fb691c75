//! The operators, two at once: they pause, resume, cancel, and look after what is stuck.

use std::sync::Arc;
use std::time::Duration;

use tidegate::Runtime;
use tidegate::api::SignalRequest;
use tidegate::model::Variables;
use tidegate::parts::{Part, PauseScope};
use tidegate::store::{InstanceFilter, Page};
use tokio::time::timeout;

use crate::client::word;
use crate::fact::Acknowledged;
use crate::model::{ALL, HORN};
use crate::world::World;

/// How long an operator waits for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// One operator, for as long as the process lives.
pub async fn operate(world: Arc<World>, runtime: Runtime, name: &'static str) {
    loop {
        let ms = world.draw("operators", |random| random.between(50, 1_500));
        tokio::time::sleep(Duration::from_millis(ms)).await;
        if world.is_calm() {
            calm(&world, &runtime, name).await;
        } else if world.fault("operators", world.temper.operators * 10) {
            act(&world, &runtime, name).await;
        }
    }
}

/// Opens every gate again.
async fn calm(world: &World, runtime: &Runtime, name: &'static str) {
    if runtime.quiescence().is_paused() && !runtime.quiescence().is_draining() {
        let answer = timeout(PATIENCE, runtime.resume(name)).await;
        world.trace(|| format!("{name} resumes: {}", word(&answer)));
    }
    for pause in runtime.partial_pauses() {
        let answer = timeout(PATIENCE, runtime.resume_part(pause.part, name)).await;
        world.trace(|| format!("{name} resumes a part: {}", word(&answer)));
    }
}

async fn act(world: &World, runtime: &Runtime, name: &'static str) {
    let process = world.draw("operators", |random| random.below(ALL.len() as u64)) as usize;
    let part = || Part::definition(ALL[process].id);
    match world.draw("operators", |random| random.below(9)) {
        0 | 1 => {
            let until = world.draw("operators", |random| {
                random.chance(500).then(|| random.between(1, 4_000))
            });
            let until = until.map(|ms| crate::world::wall(world).plus_ms(ms as i64));
            let reason = Some("sim".to_owned());
            let answer = timeout(PATIENCE, runtime.pause(reason, until, name)).await;
            world.trace(|| format!("{name} pauses: {}", word(&answer)));
        }
        2..=4 => {
            let answer = timeout(PATIENCE, runtime.resume(name)).await;
            world.trace(|| format!("{name} resumes: {}", word(&answer)));
        }
        5 => {
            let scopes = [PauseScope::Everything, PauseScope::NewStarts];
            let scope = world.draw("operators", |random| random.pick(&scopes));
            let answer = timeout(PATIENCE, runtime.pause_part(part(), scope, None, None, name)).await;
            world.trace(|| format!("{name} pauses {}: {}", ALL[process].id, word(&answer)));
        }
        6 => {
            let answer = timeout(PATIENCE, runtime.resume_part(part(), name)).await;
            world.trace(|| format!("{name} resumes {}: {}", ALL[process].id, word(&answer)));
        }
        7 => cancel(world, runtime, name).await,
        _ => {
            let answer = timeout(PATIENCE, runtime.status()).await;
            world.trace(|| format!("{name} looks: {}", word(&answer)));
        }
    }
}

async fn cancel(world: &World, runtime: &Runtime, name: &'static str) {
    let Ok(rows) = runtime
        .instances(InstanceFilter::default(), Page::first(20))
        .await
    else {
        return;
    };
    if rows.is_empty() {
        return;
    }
    let row = &rows[world.draw("operators", |random| random.below(rows.len() as u64)) as usize];
    let answer = timeout(PATIENCE, runtime.cancel(row.key, Some("sim".to_owned()), name)).await;
    match answer {
        Ok(Ok(_)) => world.acknowledge(Acknowledged::Cancelled {
            instance: row.key,
            was_live: !row.sub_status.is_finished(),
        }),
        answer => world.trace(|| format!("{name} cancels i{}: {}", row.key, word(&answer))),
    }
}

/// Somebody who looks after incidents and dead letters, and blows the horn. For as long as the process lives.
pub async fn look_after(world: Arc<World>, runtime: Runtime) {
    loop {
        tokio::time::sleep(Duration::from_millis(1_700)).await;
        if let Ok(incidents) = runtime.incidents(Default::default(), Page::first(50)).await {
            for row in incidents {
                let answer = timeout(PATIENCE, runtime.retry_incident(row.key, Some(2), "keeper")).await;
                world.trace(|| {
                    format!(
                        "incident {} of i{} ({}): {}",
                        row.key,
                        row.instance,
                        row.code,
                        word(&answer)
                    )
                });
            }
        }
        if let Ok(letters) = runtime.dead_letters(Page::first(50)).await {
            for letter in letters {
                let key = letter.stimulus.key;
                let answer = timeout(PATIENCE, runtime.replay_dead_letter(key, "keeper")).await;
                world.trace(|| format!("dead letter {key} ({}): {}", letter.code, word(&answer)));
            }
        }
        let horn = SignalRequest {
            name: HORN.to_owned(),
            variables: Variables::new(),
            tenant: None,
            actor: "keeper".to_owned(),
            source: None,
        };
        let answer = timeout(PATIENCE, runtime.broadcast(horn)).await;
        world.trace(|| format!("horn: {}", word(&answer)));
    }
}
