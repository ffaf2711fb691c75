//! What the world is asked for. Effects follow from events, and from the state alone after a restart.

use std::sync::Arc;

use tidegate_model::effect::{Incident, Job, Subscription, Timer, UserTask};
use tidegate_model::{Effect, ElementInstanceKey, IncidentKey, SubStatus};

use crate::definition::Definition;
use crate::event::{Event, Resume};
use crate::state::{ElementInstance, IncidentState, Instance, Stage, Wait, WaitFor};

/// Everything that should be under way now: open jobs, user tasks, timers, subscriptions and incidents.
pub fn outstanding(definition: &Definition, instance: &Instance) -> Vec<Effect> {
    let mut effects = Vec::new();
    for (key, state) in &instance.elements {
        effects.extend(work(definition, instance, *key, state));
        effects.extend(state.waits.iter().map(|wait| awaiting(definition, *key, wait)));
    }
    effects.extend(
        instance
            .incidents
            .iter()
            .map(|(key, state)| incident(definition, *key, state)),
    );
    effects
}

/// What `event` puts an end to, seen from the state before it.
pub(crate) fn closed_by(
    definition: &Definition,
    before: &Instance,
    event: &Event,
    effects: &mut Vec<Effect>,
) {
    match event {
        Event::ElementCompleted { key, .. } | Event::ElementTerminated { key, .. } => {
            let Some(state) = before.elements.get(key) else {
                return;
            };
            effects.extend(work_gone(*key, state));
            effects.extend(state.waits.iter().map(|wait| wait_gone(*key, wait)));
        }
        Event::JobCompleted { key, .. } | Event::UserTaskCompleted { key, .. } => {
            effects.extend(before.elements.get(key).and_then(|state| work_gone(*key, state)));
        }
        Event::IncidentRaised {
            element_instance: key,
            resume: Resume::Job,
            ..
        } => {
            effects.push(Effect::JobGone(*key));
        }
        Event::IncidentResolved { incident } => effects.push(Effect::CloseIncident(*incident)),
        Event::TimerFired {
            owner,
            element,
            next: None,
            ..
        } => {
            let wait = before.elements.get(owner).and_then(|state| state.wait(*element));
            effects.extend(wait.map(|wait| wait_gone(*owner, wait)));
        }
        Event::MessageCorrelated { owner, element, .. } => {
            if definition.element(*element).behaviour.is_interrupting() {
                let wait = before.elements.get(owner).and_then(|state| state.wait(*element));
                effects.extend(wait.map(|wait| wait_gone(*owner, wait)));
            }
        }
        Event::Caused { .. }
        | Event::InstanceStarted { .. }
        | Event::InstanceCompleted
        | Event::InstanceCancelled
        | Event::InstanceFaulted { .. }
        | Event::ElementActivated { .. }
        | Event::SequenceFlowTaken { .. }
        | Event::TokensRemoved { .. }
        | Event::VariablesSet { .. }
        | Event::ResultsMerged { .. }
        | Event::JobCreated { .. }
        | Event::JobFailed { .. }
        | Event::JobRetried { .. }
        | Event::ScriptEvaluated { .. }
        | Event::UserTaskCreated { .. }
        | Event::UserTaskAssigned { .. }
        | Event::TimerArmed { .. }
        | Event::TimerFired { next: Some(_), .. }
        | Event::MessageSubscribed { .. }
        | Event::ErrorThrown { .. }
        | Event::ErrorCaught { .. }
        | Event::IncidentRaised {
            resume: Resume::Activation | Resume::Completion | Resume::Tokens,
            ..
        }
        | Event::WorkflowInterrupted { .. }
        | Event::CrashRecovered { .. }
        | Event::InstanceHeld
        | Event::InstanceReleased => {}
    }
}

/// What `event` begins, seen from the state after it.
pub(crate) fn opened_by(definition: &Definition, after: &Instance, event: &Event, effects: &mut Vec<Effect>) {
    match event {
        Event::JobFailed { retries: 0, .. } => {}
        Event::JobCreated { key, .. }
        | Event::JobFailed { key, .. }
        | Event::JobRetried { key, .. }
        | Event::UserTaskCreated { key, .. }
        | Event::UserTaskAssigned { key, .. } => {
            let state = after.elements.get(key);
            effects.extend(state.and_then(|state| work(definition, after, *key, state)));
        }
        Event::TimerArmed { owner, element, .. }
        | Event::TimerFired {
            owner,
            element,
            next: Some(_),
            ..
        }
        | Event::MessageSubscribed { owner, element, .. } => {
            let wait = after.elements.get(owner).and_then(|state| state.wait(*element));
            effects.extend(wait.map(|wait| awaiting(definition, *owner, wait)));
        }
        Event::IncidentRaised { incident: key, .. } => {
            effects.extend(
                after
                    .incidents
                    .get(key)
                    .map(|state| incident(definition, *key, state)),
            );
        }
        Event::InstanceCompleted => effects.push(Effect::Ended(SubStatus::Finished)),
        Event::InstanceCancelled => effects.push(Effect::Ended(SubStatus::Cancelled)),
        Event::InstanceFaulted { .. } => effects.push(Effect::Ended(SubStatus::Faulted)),
        Event::Caused { .. }
        | Event::InstanceStarted { .. }
        | Event::ElementActivated { .. }
        | Event::ElementCompleted { .. }
        | Event::ElementTerminated { .. }
        | Event::SequenceFlowTaken { .. }
        | Event::TokensRemoved { .. }
        | Event::VariablesSet { .. }
        | Event::ResultsMerged { .. }
        | Event::JobCompleted { .. }
        | Event::ScriptEvaluated { .. }
        | Event::UserTaskCompleted { .. }
        | Event::TimerFired { next: None, .. }
        | Event::MessageCorrelated { .. }
        | Event::ErrorThrown { .. }
        | Event::ErrorCaught { .. }
        | Event::IncidentResolved { .. }
        | Event::WorkflowInterrupted { .. }
        | Event::CrashRecovered { .. }
        | Event::InstanceHeld
        | Event::InstanceReleased => {}
    }
}

/// The job or user task of an element instance, if one is open.
fn work(
    definition: &Definition,
    instance: &Instance,
    key: ElementInstanceKey,
    state: &ElementInstance,
) -> Option<Effect> {
    let info = definition.element(state.element);
    if state.incident.is_some() {
        return None;
    }
    match &state.stage {
        Stage::Job {
            retries,
            not_before,
            job_type,
        } => {
            let job = info.behaviour.job()?;
            Some(Effect::RunJob(Job {
                key,
                element: state.element,
                element_id: Arc::clone(&info.id),
                job_type: match job_type {
                    Some(computed) => computed.as_str().into(),
                    None => job.job_type.literal().map_or_else(|| "".into(), Arc::clone),
                },
                headers: Arc::clone(&job.headers),
                retries: *retries,
                not_before: *not_before,
                variables: instance.visible(key),
            }))
        }
        Stage::UserTask {
            assignee,
            candidate_groups,
        } => Some(Effect::OpenUserTask(UserTask {
            key,
            element: state.element,
            element_id: Arc::clone(&info.id),
            name: info.name.clone(),
            assignee: assignee.clone(),
            candidate_groups: candidate_groups.clone(),
        })),
        Stage::Entered | Stage::Waiting | Stage::Running | Stage::Leaving { .. } => None,
    }
}

fn work_gone(key: ElementInstanceKey, state: &ElementInstance) -> Option<Effect> {
    match &state.stage {
        // A job that an incident stopped is gone already.
        Stage::Job { .. } => state.incident.is_none().then_some(Effect::JobGone(key)),
        Stage::UserTask { .. } => Some(Effect::CloseUserTask(key)),
        Stage::Entered | Stage::Waiting | Stage::Running | Stage::Leaving { .. } => None,
    }
}

fn awaiting(definition: &Definition, owner: ElementInstanceKey, wait: &Wait) -> Effect {
    let element = wait.element;
    match &wait.kind {
        WaitFor::Timer { due_at, .. } => Effect::ArmTimer(Timer {
            owner,
            element,
            due_at: *due_at,
        }),
        WaitFor::Message {
            name,
            correlation_key,
        } => {
            let info = definition.element(element);
            let message_name = match name {
                Some(computed) => computed.as_str().into(),
                None => crate::state::message_name(definition, element),
            };
            Effect::Subscribe(Subscription {
                kind: tidegate_model::effect::SubscriptionKind::Message,
                owner,
                element,
                message_name,
                correlation_key: correlation_key.clone(),
                once: info.behaviour.is_interrupting(),
            })
        }
    }
}

fn wait_gone(owner: ElementInstanceKey, wait: &Wait) -> Effect {
    let element = wait.element;
    match &wait.kind {
        WaitFor::Timer { .. } => Effect::DisarmTimer { owner, element },
        WaitFor::Message { .. } => Effect::Unsubscribe { owner, element },
    }
}

fn incident(definition: &Definition, key: IncidentKey, state: &IncidentState) -> Effect {
    Effect::RaiseIncident(Incident {
        key,
        element_instance: state.element_instance,
        element_id: Some(Arc::clone(&definition.element(state.element).id)),
        code: state.code.clone(),
        message: state.message.clone(),
    })
}
