//! The change of a live instance to another version of its process. What it waits for is compared, not begun anew: a
//! timer keeps its time, what the new version added is armed, what it dropped is disarmed.

use std::collections::BTreeMap;

use tidegate_model::{
    Cause, DefinitionKey, Effect, ElementIndex, ElementInstanceKey, IncidentKey, KeyGenerator, Migration,
    Rejection, Timestamp,
};

use crate::advance::follow;
use crate::apply::apply;
use crate::decide::{Decision, Step, Turn};
use crate::definition::Definition;
use crate::effects::{closed_by, outstanding};
use crate::event::Event;
use crate::repair::crossing::{Crossing, Passage};
use crate::state::Instance;

/// From which version to which, and who wants it.
#[derive(Debug, Clone)]
pub struct Change<'a> {
    /// The definition that the instance has.
    pub old: &'a Definition,
    /// Its key.
    pub from: DefinitionKey,
    /// The definition that it is to have.
    pub new: &'a Definition,
    /// Its key, and what elements are called there.
    pub migration: &'a Migration,
    /// Who wants it.
    pub cause: Cause,
}

/// Changes `instance` to another version of its process and follows that to rest. Events and effects are as in
/// [`crate::advance`]; events behind [`Event::Migrated`] are of the new definition, and so is the instance afterwards.
///
/// # Errors
/// The instance has ended, or cannot be changed this way: every reason at once. Nothing was changed then.
pub fn migrate(
    change: &Change<'_>,
    instance: &mut Instance,
    now: Timestamp,
    keys: &mut KeyGenerator,
    events: &mut Vec<Event>,
    effects: &mut Vec<Effect>,
) -> Result<(), Rejection> {
    if let Some(ended) = instance.ended() {
        return Err(Rejection::Ended(ended));
    }
    let Change { old, new, .. } = *change;
    let Passage {
        elements,
        flows,
        closed,
        gone,
        armed,
    } = Crossing::new(change, instance).look(now, keys)?;
    let cause = change.cause.clone();
    events.push(Event::Caused { time: now, cause });
    let gone = gone
        .into_iter()
        .map(|incident| Event::IncidentResolved { incident });
    let closed = closed
        .into_iter()
        .map(|(owner, element)| Event::WaitsClosed { owner, element });
    for event in gone.chain(closed) {
        closed_by(old, instance, &event, effects);
        apply(old, instance, &event);
        events.push(event);
    }
    let before = outstanding(old, instance);
    let migrated = Event::Migrated {
        from: change.from,
        to: change.migration.definition,
        elements,
        flows,
    };
    apply(new, instance, &migrated);
    events.push(migrated);
    compare(before, outstanding(new, instance), now, effects);
    let mut decision = Decision::default();
    let mut turn = Turn {
        definition: new,
        instance,
        now,
        keys,
        out: &mut decision,
    };
    for (owner, event) in armed {
        turn.then(Step::Arm {
            owner,
            event,
            except: None,
        });
    }
    // What was stopped before is still stopped; every other token may find its way open now.
    if !instance.has_stopped_tokens() {
        turn.enter_again();
    }
    follow(new, instance, decision, now, keys, events, effects)
}

/// What is under way, by who waits and, where that may be several things, for what.
#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Name {
    Job(ElementInstanceKey),
    Task(ElementInstanceKey),
    Timer(ElementInstanceKey, ElementIndex),
    Subscription(ElementInstanceKey, ElementIndex),
    Incident(IncidentKey),
}

fn named(effects: Vec<Effect>) -> BTreeMap<Name, Effect> {
    let name = |effect: &Effect| match effect {
        Effect::RunJob(job) => Some(Name::Job(job.key)),
        Effect::OpenUserTask(task) => Some(Name::Task(task.key)),
        Effect::ArmTimer(timer) => Some(Name::Timer(timer.owner, timer.element)),
        Effect::Subscribe(found) => Some(Name::Subscription(found.owner, found.element)),
        Effect::RaiseIncident(incident) => Some(Name::Incident(incident.key)),
        // A called instance goes on as it is; nothing else is ever under way.
        _ => None,
    };
    let all = effects.into_iter();
    all.filter_map(|effect| Some((name(&effect)?, effect))).collect()
}

/// What the world is asked for anew, and what it is told to forget, because an index or a name changed. What is taken
/// back comes first: an index of today may have been another element's before.
fn compare(before: Vec<Effect>, after: Vec<Effect>, now: Timestamp, effects: &mut Vec<Effect>) {
    let (before, after) = (named(before), named(after));
    for (name, old) in &before {
        if after.get(name).is_some_and(|new| is_same(old, new, now)) {
            continue;
        }
        match (*name, old) {
            (Name::Job(key), Effect::RunJob(job)) => {
                if job.not_before.is_some() {
                    let (owner, element) = (key, job.element);
                    effects.push(Effect::DisarmTimer { owner, element });
                }
                effects.push(Effect::JobGone(key));
            }
            (Name::Task(key), _) if !after.contains_key(name) => effects.push(Effect::CloseUserTask(key)),
            (Name::Timer(owner, element), _) => effects.push(Effect::DisarmTimer { owner, element }),
            (Name::Subscription(owner, element), _) => effects.push(Effect::Unsubscribe { owner, element }),
            (Name::Incident(key), _) => effects.push(Effect::CloseIncident(key)),
            (Name::Job(_) | Name::Task(_), _) => {}
        }
    }
    let anew = after.into_iter().filter(|(name, new)| {
        let old = before.get(name);
        !old.is_some_and(|old| is_same(old, new, now))
    });
    effects.extend(anew.map(|(_, effect)| effect));
}

/// True if what is under way need not be touched. A worker's job goes on while what it was told stays the same.
fn is_same(old: &Effect, new: &Effect, now: Timestamp) -> bool {
    match (old, new) {
        (Effect::RunJob(old), Effect::RunJob(new)) => {
            let rests = old.not_before.is_some_and(|at| at > now);
            (&old.element_id, &old.job_type, &old.headers) == (&new.element_id, &new.job_type, &new.headers)
                && (!rests || old.element == new.element)
        }
        (Effect::OpenUserTask(old), Effect::OpenUserTask(new)) => {
            (&old.element_id, &old.name) == (&new.element_id, &new.name)
        }
        (old, new) => old == new,
    }
}
