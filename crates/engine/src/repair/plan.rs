//! What a repair would do: it is done to a copy, and both are compared.

use std::collections::BTreeSet;

use tidegate_model::{
    Cause, Command, CommandKind, Effect, ElementInstanceKey, KeyGenerator, Moved, Plan, Planned, Rejection,
    Timestamp,
};

use crate::advance::advance;
use crate::definition::Definition;
use crate::event::Event;
use crate::repair::{Change, migrate};
use crate::state::{Instance, WaitView};

/// What a command would do to `instance`, which stays as it is.
///
/// # Errors
/// It would be refused.
pub fn rehearse(
    definition: &Definition,
    instance: &Instance,
    kind: CommandKind,
    now: Timestamp,
) -> Result<Plan, Rejection> {
    let mut copy = instance.clone();
    let (mut events, mut effects) = (Vec::new(), Vec::new());
    let command = Command::new(kind, Cause::Engine);
    let mut keys = spare_keys(instance);
    advance(
        definition,
        &mut copy,
        command,
        now,
        &mut keys,
        &mut events,
        &mut effects,
    )?;
    Ok(compared(
        (definition, instance),
        (definition, &copy),
        &events,
        effects,
    ))
}

/// What a change of version would do to `instance`, which stays as it is.
///
/// # Errors
/// It would be refused.
pub fn rehearse_migration(
    change: &Change<'_>,
    instance: &Instance,
    now: Timestamp,
) -> Result<Plan, Rejection> {
    let mut copy = instance.clone();
    let (mut events, mut effects) = (Vec::new(), Vec::new());
    let mut keys = spare_keys(instance);
    migrate(change, &mut copy, now, &mut keys, &mut events, &mut effects)?;
    Ok(compared(
        (change.old, instance),
        (change.new, &copy),
        &events,
        effects,
    ))
}

/// Keys above all those that the instance has. Nobody ever sees them.
fn spare_keys(instance: &Instance) -> KeyGenerator {
    let live = instance.elements.keys().map(|key| key.0);
    let incidents = instance.incidents.keys().map(|key| key.0);
    let highest = live.chain(incidents).max().unwrap_or(0).max(instance.key.0);
    KeyGenerator::new(tidegate_model::id::shard_of(highest), highest)
}

type Side<'a> = (&'a Definition, &'a Instance);

fn compared((old, before): Side<'_>, (new, after): Side<'_>, events: &[Event], effects: Vec<Effect>) -> Plan {
    let element = |definition: &Definition, instance: &Instance, key: &ElementInstanceKey| {
        let state = instance.elements.get(key)?;
        let info = definition.element(state.element);
        Some((info.id.to_string(), info.kind.to_owned()))
    };
    let mut plan = Plan {
        ends: after.ended(),
        ..Plan::default()
    };
    for key in before.elements.keys() {
        let Some((id, kind)) = element(old, before, key) else {
            continue;
        };
        match element(new, after, key) {
            Some((now, _)) if now == id => {}
            Some((now, _)) => plan.moved.push(Moved {
                element_instance_key: *key,
                from_element_id: id,
                to_element_id: now,
            }),
            None => plan.ended.push(Planned {
                element_id: Some(id),
                element_instance_key: Some(*key),
                kind,
                detail: String::new(),
            }),
        }
    }
    let fresh = after
        .elements
        .keys()
        .filter(|key| !before.elements.contains_key(*key));
    plan.started = fresh
        .filter_map(|key| element(new, after, key))
        .map(|(id, kind)| Planned {
            element_id: Some(id),
            element_instance_key: None,
            kind,
            detail: String::new(),
        })
        .collect();
    let (waited, waits) = (before.waiting_for(old), after.waiting_for(new));
    let names = |all: &[WaitView]| -> BTreeSet<_> { all.iter().map(named).collect() };
    let (was, is) = (names(&waited), names(&waits));
    let is_known = |key: &ElementInstanceKey| before.elements.contains_key(key) || key.0 == before.key.0;
    let line = |wait: &WaitView| Planned {
        element_id: Some(wait.element_id.to_string()),
        element_instance_key: Some(wait.element_instance).filter(is_known),
        kind: wait.kind.word().to_owned(),
        detail: wait.kind.detail(),
    };
    // A wait under another id is the same wait.
    let renamed: BTreeSet<_> = plan
        .moved
        .iter()
        .map(|moved| moved.element_instance_key)
        .collect();
    let is_same = |wait: &WaitView, others: &[WaitView]| {
        renamed.contains(&wait.element_instance)
            && others
                .iter()
                .any(|other| other.element_instance == wait.element_instance && other.kind == wait.kind)
    };
    let gone = waited
        .iter()
        .filter(|wait| !is.contains(&named(wait)) && !is_same(wait, &waits));
    plan.disarmed = gone.map(line).collect();
    let anew = waits
        .iter()
        .filter(|wait| !was.contains(&named(wait)) && !is_same(wait, &waited));
    plan.armed = anew.map(line).collect();
    for (key, incident) in &after.incidents {
        if !before.incidents.contains_key(key) {
            plan.incidents.push(Planned {
                element_id: Some(new.element(incident.element).id.to_string()),
                element_instance_key: incident.element_instance.filter(is_known),
                kind: incident.code.clone(),
                detail: incident.message.clone(),
            });
        }
    }
    let thrower = |name: &str| {
        events.iter().find_map(|event| match event {
            Event::MessagePublished {
                element, name: sent, ..
            }
            | Event::SignalThrown {
                element, name: sent, ..
            } if sent == name => Some(new.element(*element).id.to_string()),
            _ => None,
        })
    };
    for effect in effects {
        let (kind, name) = match effect {
            Effect::PublishMessage { name, .. } => ("message", name),
            Effect::BroadcastSignal { name, .. } => ("signal", name),
            _ => continue,
        };
        plan.sent.push(Planned {
            element_id: thrower(&name),
            element_instance_key: None,
            kind: kind.to_owned(),
            detail: name.to_string(),
        });
    }
    plan
}

/// A wait without its index, which changes with the version.
fn named(wait: &WaitView) -> (ElementInstanceKey, String, &'static str, String) {
    (
        wait.element_instance,
        wait.element_id.to_string(),
        wait.kind.word(),
        wait.kind.detail(),
    )
}
