//! What a sabotaged store does in the place of an honest one. Without sabotage: nothing.

use tidegate::engine::Event;
use tidegate::model::SubStatus;
use tidegate::store::{Commit, CommitResult, InstanceUpdate, Outcome, Write};

use crate::fact::events;
use crate::sabotage::Sabotage;
use crate::world::World;

/// True if the store answers before it writes.
pub fn answers_first(world: &World) -> bool {
    world.sabotage == Some(Sabotage::AnswersFirst)
}

/// The answer to a commit that is not written.
pub fn instead(world: &World, commit: &Commit) -> Option<CommitResult> {
    let has = |is: fn(&Write) -> bool| commit.writes.iter().any(is);
    let is_forgotten = match world.sabotage? {
        Sabotage::ForgetsStarts => {
            has(|write| matches!(write, Write::CreateInstance { .. }))
                && world.draw("forge", |random| random.chance(500))
        }
        Sabotage::LosesMarks => has(is_mark),
        Sabotage::LosesAudit => has(|write| matches!(write, Write::Audit(row) if row.scope == "runtime")),
        Sabotage::AnswersFirst
        | Sabotage::SecondWriter
        | Sabotage::Undead
        | Sabotage::Swaps
        | Sabotage::Orphan => false,
    };
    is_forgotten.then(|| Ok(Outcome::default()))
}

fn is_mark(write: &Write) -> bool {
    let Write::Journal(row) = write else { return false };
    events(row)
        .iter()
        .any(|event| matches!(event, Event::WorkflowInterrupted { .. }))
}

/// True if the store keeps this message back until the next one of its line.
pub fn swaps(world: &World, commit: &Commit, held: Option<&Commit>) -> bool {
    world.sabotage == Some(Sabotage::Swaps) && held.is_none() && line_of(commit).is_some()
}

/// True if `commit` is a message of the same line as `held`.
pub fn is_next(held: &Commit, commit: &Commit) -> bool {
    line_of(held) == line_of(commit)
}

fn line_of(commit: &Commit) -> Option<(&str, &str)> {
    commit.writes.iter().find_map(|write| match write {
        Write::Publish { row, .. } => Some((row.name.as_str(), row.correlation_key.as_str())),
        _ => None,
    })
}

/// What another writer writes behind a commit.
pub fn after(world: &World, commit: &Commit) -> Vec<Commit> {
    let updates = commit.writes.iter().filter_map(|write| match write {
        Write::UpdateInstance(update) => Some(update),
        _ => None,
    });
    match world.sabotage {
        Some(Sabotage::Undead) => updates
            .filter(|update| update.sub_status.is_finished())
            .map(|update| write(next(update, SubStatus::Suspended)))
            .collect(),
        Some(Sabotage::SecondWriter) => {
            let mut again = commit.clone();
            again.expect.clear();
            let mut is_owned = false;
            for write in &mut again.writes {
                match write {
                    Write::UpdateInstance(update) => {
                        update.revision += 1;
                        is_owned = true;
                    }
                    Write::Journal(row) => row.revision += 1,
                    _ => {}
                }
            }
            match is_owned {
                true => vec![again],
                false => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

fn next(update: &InstanceUpdate, sub_status: SubStatus) -> InstanceUpdate {
    InstanceUpdate {
        revision: update.revision + 1,
        sub_status,
        ended_at: None,
        state: None,
        ..update.clone()
    }
}

fn write(update: InstanceUpdate) -> Commit {
    Commit {
        expect: Vec::new(),
        writes: vec![Write::UpdateInstance(update)],
    }
}
