//! What the world is asked for. Effects follow from events, and from the state alone after a restart.

use std::sync::Arc;

use tidegate_model::effect::{Child, Incident, Job, Subscription, SubscriptionKind, Timer, UserTask};
use tidegate_model::{Effect, ElementInstanceKey, Hold, HoldScope, IncidentKey, InstanceKey, SubStatus};

use crate::definition::Definition;
use crate::event::{Event, Resume};
use crate::state::{ElementInstance, IncidentState, Instance, Stage, Wait, WaitFor};

/// Everything that should be under way now: open jobs, user tasks, timers, subscriptions and incidents.
pub fn outstanding(definition: &Definition, instance: &Instance) -> Vec<Effect> {
    let own = instance.as_owner(ElementInstanceKey::ROOT);
    let at_top = instance.waits.iter();
    let mut effects: Vec<Effect> = at_top
        .filter_map(|wait| awaiting(definition, own, wait))
        .collect();
    for (key, state) in &instance.elements {
        effects.extend(work(definition, instance, *key, state));
        let waits = state.waits.iter();
        effects.extend(waits.filter_map(|wait| awaiting(definition, *key, wait)));
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
            effects.extend(work_gone(before, *key, state));
            effects.extend(state.waits.iter().filter_map(|wait| wait_gone(*key, wait)));
        }
        Event::JobCompleted { key, .. } | Event::UserTaskCompleted { key, .. } => {
            effects.extend(before.elements.get(key).and_then(|state| work_gone(before, *key, state)));
        }
        Event::IncidentRaised {
            element_instance: key,
            resume: Resume::Job,
            ..
        } => {
            effects.push(Effect::JobGone(*key));
        }
        Event::IncidentResolved { incident } => effects.push(Effect::CloseIncident(*incident)),
        Event::InstanceReleased { origins, .. } => {
            let of_tree = before.holds().iter().filter(|hold| hold.scope == HoldScope::Tree);
            let ended: Vec<_> = of_tree.map(|hold| hold.origin).filter(|origin| origins.contains(origin)).collect();
            if !ended.is_empty() {
                effects.extend(before.children().map(|instance| Effect::ReleaseChild {
                    instance,
                    origins: ended.clone(),
                }));
            }
        }
        Event::TimerFired {
            owner,
            element,
            next: None,
            ..
        } => {
            let wait = before.wait_of(*owner, *element);
            effects.extend(wait.and_then(|wait| wait_gone(*owner, wait)));
        }
        Event::MessageCorrelated { owner, element, .. } | Event::SignalCaught { owner, element, .. } => {
            if definition.element(*element).behaviour.is_interrupting() {
                let wait = before.wait_of(*owner, *element);
                effects.extend(wait.and_then(|wait| wait_gone(*owner, wait)));
            }
        }
        Event::WaitsClosed { owner, element } => {
            let waits = before.waits_of(*owner).into_iter().flatten();
            let closed = waits.filter(|wait| definition.event_of(wait.element) == *element);
            effects.extend(closed.filter_map(|wait| wait_gone(*owner, wait)));
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
            resume:
                Resume::Activation
                | Resume::Completion
                | Resume::Tokens
                | Resume::Listeners
                | Resume::Next
                | Resume::Call
                | Resume::Nothing,
            ..
        }
        | Event::MessagePublished { .. }
        | Event::SignalThrown { .. }
        | Event::SignalSubscribed { .. }
        | Event::EscalationThrown { .. }
        | Event::EscalationCaught { .. }
        | Event::EscalationUncaught { .. }
        | Event::ConditionAwaited { .. }
        | Event::ConditionMet { .. }
        | Event::ConditionLapsed { .. }
        | Event::GatewayOpened { .. }
        | Event::GatewayReset { .. }
        | Event::WorkflowInterrupted { .. }
        | Event::CrashRecovered { .. }
        | Event::HistoryTrimmed { .. }
        | Event::InstanceHeld { .. }
        | Event::CancelRequested { .. }
        | Event::ChildCancelRequested { .. }
        | Event::ActivityAbandoned { .. }
        | Event::ActivityInterrupted { .. }
        // A child that has ended is known to be gone by whoever said so.
        | Event::ChildEnded { .. }
        | Event::ChildCalled { .. }
        | Event::LoopStarted { .. }
        | Event::LoopTurnActivated { .. }
        | Event::LoopOutputCollected { .. }
        | Event::LoopEnded { .. }
        | Event::CompensationActivated { .. }
        | Event::CompensationEnded { .. }
        | Event::TransactionCancelled { .. }
        | Event::AdHocProgressed { .. }
        | Event::CompensationKept { .. }
        | Event::AdHocClosed { .. }
        // What changes with the version is told by whoever brings it about.
        | Event::Migrated { .. }
        | Event::TokensTaken { .. }
        | Event::ScopeEntered { .. }
        | Event::CompensationDetached { .. } => {}
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
        Event::ChildCalled { key, child, .. } => {
            let state = after.elements.get(key);
            effects.extend(state.and_then(|state| work(definition, after, *key, state)));
            // What is called under a hold of the whole tree is born held.
            effects.extend(after.holds().iter().filter_map(|hold| held(*child, hold)));
        }
        Event::InstanceHeld { hold } => {
            let hold = hold.iter();
            effects.extend(hold.flat_map(|hold| after.children().filter_map(|child| held(child, hold))));
        }
        // Asked again, with less patience: so are those that were asked before.
        Event::CancelRequested { .. } => {
            let calls = after
                .elements
                .iter()
                .filter_map(|(key, state)| Some((*key, state.call()?)));
            let asked = calls.filter(|(_, call)| call.is_cancelled);
            effects.extend(asked.map(|(owner, call)| cancel_child(after, owner, call.child, true)));
        }
        Event::ChildCancelRequested { key, child, .. } => {
            effects.push(cancel_child(after, *key, *child, true));
        }
        Event::TimerArmed { owner, element, .. }
        | Event::TimerFired {
            owner,
            element,
            next: Some(_),
            ..
        }
        | Event::MessageSubscribed { owner, element, .. }
        | Event::SignalSubscribed { owner, element, .. } => {
            let wait = after.wait_of(*owner, *element);
            effects.extend(wait.and_then(|wait| awaiting(definition, *owner, wait)));
        }
        Event::MessagePublished {
            name,
            correlation_key,
            variables,
            ttl_ms,
            message_id,
            ..
        } => effects.push(Effect::PublishMessage {
            name: name.clone(),
            correlation_key: correlation_key.clone(),
            variables: variables.clone(),
            ttl_ms: *ttl_ms,
            message_id: message_id.clone(),
        }),
        Event::EscalationUncaught { code, variables, .. } => effects.push(Effect::EscalateToParent {
            code: code.clone(),
            variables: variables.clone(),
        }),
        Event::SignalThrown { name, variables, .. } => effects.push(Effect::BroadcastSignal {
            name: name.clone(),
            variables: variables.clone(),
        }),
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
        | Event::SignalCaught { .. }
        | Event::WaitsClosed { .. }
        | Event::EscalationThrown { .. }
        | Event::EscalationCaught { .. }
        | Event::ConditionAwaited { .. }
        | Event::ConditionMet { .. }
        | Event::ConditionLapsed { .. }
        | Event::GatewayOpened { .. }
        | Event::GatewayReset { .. }
        | Event::WorkflowInterrupted { .. }
        | Event::CrashRecovered { .. }
        | Event::HistoryTrimmed { .. }
        | Event::ActivityAbandoned { .. }
        | Event::ActivityInterrupted { .. }
        | Event::ChildEnded { .. }
        | Event::LoopStarted { .. }
        | Event::LoopTurnActivated { .. }
        | Event::LoopOutputCollected { .. }
        | Event::LoopEnded { .. }
        | Event::CompensationActivated { .. }
        | Event::CompensationEnded { .. }
        | Event::TransactionCancelled { .. }
        | Event::AdHocProgressed { .. }
        | Event::CompensationKept { .. }
        | Event::AdHocClosed { .. }
        | Event::CompensationDetached { .. }
        // What changes with the version is told by whoever brings it about.
        | Event::Migrated { .. }
        | Event::TokensTaken { .. }
        | Event::ScopeEntered { .. }
        | Event::InstanceReleased { .. } => {}
    }
}

fn held(instance: InstanceKey, hold: &Hold) -> Option<Effect> {
    (hold.scope == HoldScope::Tree).then(|| Effect::HoldChild {
        instance,
        hold: hold.clone(),
    })
}

fn cancel_child(
    caller: &Instance,
    owner: ElementInstanceKey,
    instance: InstanceKey,
    is_awaited: bool,
) -> Effect {
    Effect::CancelChild {
        instance,
        owner,
        is_awaited,
        patience_ms: caller
            .cancellation()
            .and_then(|cancellation| cancellation.patience_ms),
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
            is_interrupted: _,
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
            details,
        } => Some(Effect::OpenUserTask(UserTask {
            key,
            element: state.element,
            element_id: Arc::clone(&info.id),
            name: info.name.clone(),
            assignee: assignee.clone(),
            candidate_groups: candidate_groups.clone(),
            details: details.as_deref().cloned().unwrap_or_default(),
        })),
        Stage::Call(call) => Some(Effect::StartChild(Child {
            instance: call.child,
            owner: key,
            process_id: call.process_id.clone(),
            binding: call.binding.clone(),
            variables: call.variables.clone(),
            business_key: call.business_key.clone(),
        })),
        Stage::Entered | Stage::Waiting | Stage::Running | Stage::Leaving { .. } | Stage::Joined { .. } => {
            None
        }
    }
}

fn work_gone(before: &Instance, key: ElementInstanceKey, state: &ElementInstance) -> Option<Effect> {
    match &state.stage {
        // A job that an incident stopped is gone already.
        Stage::Job { .. } => state.incident.is_none().then_some(Effect::JobGone(key)),
        Stage::UserTask { .. } => Some(Effect::CloseUserTask(key)),
        Stage::Call(call) => Some(cancel_child(before, key, call.child, false)),
        Stage::Entered | Stage::Waiting | Stage::Running | Stage::Leaving { .. } | Stage::Joined { .. } => {
            None
        }
    }
}

/// What the world is asked for by a wait; nothing where the instance itself looks for it.
fn awaiting(definition: &Definition, owner: ElementInstanceKey, wait: &Wait) -> Option<Effect> {
    let element = wait.element;
    let once = definition.element(element).behaviour.is_interrupting();
    let name = |computed: &Option<String>| match computed {
        Some(computed) => computed.as_str().into(),
        None => crate::state::awaited_name(definition, element),
    };
    match &wait.kind {
        WaitFor::Timer { due_at, .. } => Some(Effect::ArmTimer(Timer {
            owner,
            element,
            due_at: *due_at,
        })),
        WaitFor::Message {
            name: computed,
            correlation_key,
        } => Some(Effect::Subscribe(Subscription {
            kind: SubscriptionKind::Message,
            owner,
            element,
            message_name: name(computed),
            correlation_key: correlation_key.clone(),
            once,
        })),
        WaitFor::Signal { name: computed } => Some(Effect::Subscribe(Subscription {
            kind: SubscriptionKind::Signal,
            owner,
            element,
            message_name: name(computed),
            correlation_key: String::new(),
            once,
        })),
        WaitFor::Condition { .. } => None,
    }
}

fn wait_gone(owner: ElementInstanceKey, wait: &Wait) -> Option<Effect> {
    let element = wait.element;
    match &wait.kind {
        WaitFor::Timer { .. } => Some(Effect::DisarmTimer { owner, element }),
        WaitFor::Message { .. } | WaitFor::Signal { .. } => Some(Effect::Unsubscribe { owner, element }),
        WaitFor::Condition { .. } => None,
    }
}

fn incident(definition: &Definition, key: IncidentKey, state: &IncidentState) -> Effect {
    Effect::RaiseIncident(Incident {
        key,
        element_instance: state.element_instance,
        element_id: (state.resume != Resume::Nothing)
            .then(|| Arc::clone(&definition.element(state.element).id)),
        code: state.code.clone(),
        message: state.message.clone(),
    })
}
