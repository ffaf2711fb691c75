//! Runs an accepted file and compares with what its row says.

use std::time::{Duration, Instant};

use tidegate::api::{SignalRequest, StartRequest};
use tidegate::model::{InstanceKey, SubStatus, Variables};
use tidegate::store::{IncidentFilter, InstanceFilter, Page, UserTaskFilter};

use super::rows::Run;
use crate::support::Stand;

/// How long a process may take to come to where it is expected.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts the process `P` and says what is not as expected.
pub async fn walk(stand: &Stand, run: &Run) -> Result<(), String> {
    match *run {
        Run::Path(path) => {
            let events = events(stand, ended(stand).await?).await;
            let done = events
                .iter()
                .filter_map(|event| event.strip_prefix("ElementCompleted "));
            let done: Vec<_> = done.filter(|id| !id.is_empty()).collect();
            let is_right = done == path;
            is_right
                .then_some(())
                .ok_or_else(|| format!("went {done:?}, and not {path:?}"))
        }
        Run::Once(end, others) => {
            let events = events(stand, ended(stand).await?).await;
            let times = |event: &str| events.iter().filter(|e| *e == event).count();
            let all = events
                .iter()
                .filter(|e| e.starts_with("ElementCompleted "))
                .count();
            match (times(&format!("ElementCompleted {end}")), all) {
                (1, all) if all == others + 1 => Ok(()),
                (n, all) => Err(format!("`{end}` was reached {n} times, with {all} completions")),
            }
        }
        Run::Incident(element, says) => {
            stand.start("P", "{}").await;
            let incident = first_incident(stand).await?;
            let is_right =
                incident.element_id.as_deref().unwrap_or("") == element && incident.message.contains(says);
            is_right
                .then_some(())
                .ok_or_else(|| format!("incident at {:?}: {}", incident.element_id, incident.message))
        }
        Run::Waits(element) => {
            let key = stand.start("P", "{}").await.instance;
            stand
                .until(key, |d| d.row.sub_status == SubStatus::Suspended)
                .await;
            let waiting = stand
                .runtime
                .instance(key)
                .await
                .map_err(|e| e.to_string())?
                .waiting_for;
            match waiting.as_slice() {
                [wait] if wait.element_id == element => Ok(()),
                other => Err(format!("waits for {other:?}")),
            }
        }
        Run::Rests => {
            let key = stand.start("P", "{}").await.instance;
            at_rest(stand, key).await
        }
        Run::Starts(most) => {
            // Turns of a second each: what a cycle starts is no more than one instance in each.
            for _ in 0..3 {
                stand.clock.advance(1_000);
                stand.idle().await;
            }
            settled(stand).await?;
            let found = all(stand).await.len();
            (found <= most)
                .then_some(())
                .ok_or_else(|| format!("{found} instances were started"))
        }
        Run::Storm => {
            let key = stand.start("P", "{}").await.instance;
            stand
                .until(key, |d| d.row.sub_status == SubStatus::Suspended)
                .await;
            let request = SignalRequest {
                name: "sig".to_owned(),
                variables: Variables::new(),
                tenant: None,
                actor: "test".to_owned(),
                source: None,
            };
            stand
                .runtime
                .broadcast(request)
                .await
                .map_err(|error| error.to_string())?;
            settled(stand).await?;
            // Whatever became of it, it can be ended.
            let cancelled = stand.runtime.cancel(key, None, "test").await;
            cancelled.map(drop).map_err(|error| error.to_string())?;
            stand
                .until(key, |d| d.row.sub_status == SubStatus::Cancelled)
                .await;
            Ok(())
        }
        Run::Task(visits) => {
            let key = stand.start("P", "{}").await.instance;
            let task = loop {
                let filter = UserTaskFilter::default();
                let tasks = stand.runtime.user_tasks(filter, Page::first(2)).await;
                if let [task] = tasks.map_err(|error| error.to_string())?.as_slice() {
                    break task.key;
                }
                tokio::task::yield_now().await;
            };
            let done = stand
                .runtime
                .complete_user_task(task, Variables::new(), "test")
                .await;
            done.map(drop).map_err(|error| error.to_string())?;
            stand
                .until(key, |d| d.row.sub_status == SubStatus::Finished)
                .await;
            let events = events(stand, key).await;
            for (event, expected) in visits {
                let times = events.iter().filter(|e| e == event).count();
                if times != *expected {
                    return Err(format!("`{event}` happened {times} times, not {expected}"));
                }
            }
            Ok(())
        }
        Run::OneMessage(waiting) => {
            let key = stand.start("P", "{}").await.instance;
            stand.until(key, |d| d.waiting_for.len() == waiting).await;
            stand.publish("m", "", "{}").await;
            stand.until(key, |d| d.waiting_for.len() == waiting - 1).await;
            stand.idle().await;
            let left = stand
                .runtime
                .instance(key)
                .await
                .map_err(|error| error.to_string())?;
            (left.waiting_for.len() == waiting - 1)
                .then_some(())
                .ok_or_else(|| format!("{} wait still", left.waiting_for.len()))
        }
    }
}

/// Runs the process to its end.
async fn ended(stand: &Stand) -> Result<InstanceKey, String> {
    let request = StartRequest::latest("P").wait(PATIENCE);
    let started = stand
        .runtime
        .start(request)
        .await
        .map_err(|error| error.to_string())?;
    match started.sub_status {
        SubStatus::Finished => Ok(started.instance),
        other => Err(format!("it is {other:?}, and not finished")),
    }
}

async fn events(stand: &Stand, instance: InstanceKey) -> Vec<String> {
    stand.idle().await;
    stand.events(instance).await
}

async fn all(stand: &Stand) -> Vec<tidegate::store::InstanceRow> {
    let rows = stand
        .runtime
        .instances(InstanceFilter::default(), Page::first(10_000))
        .await;
    rows.expect("the memory store can be read")
}

async fn first_incident(stand: &Stand) -> Result<tidegate::store::IncidentRow, String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let found = stand
            .runtime
            .incidents(IncidentFilter::default(), Page::first(1))
            .await;
        if let Some(incident) = found.map_err(|error| error.to_string())?.pop() {
            return Ok(incident);
        }
        if Instant::now() > until {
            return Err("no incident was raised".to_owned());
        }
        tokio::task::yield_now().await;
    }
}

async fn at_rest(stand: &Stand, key: InstanceKey) -> Result<(), String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let row = stand
            .runtime
            .instance(key)
            .await
            .map_err(|error| error.to_string())?
            .row;
        if row.sub_status == SubStatus::Suspended || row.sub_status.is_finished() {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(format!("it stays {:?}", row.sub_status));
        }
        tokio::task::yield_now().await;
    }
}

/// Waits until nothing is live and nothing more is written.
async fn settled(stand: &Stand) -> Result<(), String> {
    const QUIET_LOOKS: usize = 200;
    let until = Instant::now() + PATIENCE;
    let mut seen = 0;
    let mut quiet = 0;
    while quiet < QUIET_LOOKS {
        let rows = all(stand).await;
        let now: u64 = rows.iter().map(|row| row.revision).sum();
        quiet = if now == seen && stand.runtime.quiescence().live() == 0 {
            quiet + 1
        } else {
            0
        };
        seen = now;
        if Instant::now() > until {
            return Err(format!(
                "it goes on and on: {} instances, {now} commits",
                rows.len()
            ));
        }
        tokio::task::yield_now().await;
    }
    Ok(())
}
