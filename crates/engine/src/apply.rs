//! Applying: changes the state as an event says. Decides nothing and refuses nothing.

use tidegate_model::{ElementIndex, ElementInstanceKey, Variables};

use crate::definition::{Definition, FlowIndex};
use crate::element::Shape;
use crate::event::{Event, Resume};
use crate::state::{ElementInstance, IncidentState, Instance, Phase, Scope, Stage, Wait, WaitFor};

/// Changes `instance` as `event` says.
pub fn apply(definition: &Definition, instance: &mut Instance, event: &Event) {
    if !matches!(event, Event::Caused { .. }) {
        instance.sequence += 1;
    }
    match event {
        Event::Caused { .. }
        | Event::ErrorThrown { .. }
        | Event::MessagePublished { .. }
        | Event::SignalThrown { .. }
        | Event::EscalationThrown { .. }
        | Event::EscalationUncaught { .. }
        | Event::WorkflowInterrupted { .. }
        | Event::CrashRecovered { .. }
        | Event::InstanceHeld
        | Event::InstanceReleased => {}
        Event::InstanceStarted { variables, .. } => {
            instance.phase = Phase::Running;
            instance.variables = variables.clone();
        }
        Event::InstanceCompleted => instance.phase = Phase::Completed,
        Event::InstanceCancelled => instance.phase = Phase::Cancelled,
        Event::InstanceFaulted { .. } => instance.phase = Phase::Faulted,
        Event::ElementActivated { .. } => activated(definition, instance, event),
        Event::ElementCompleted { key, element } => {
            if definition.element(*element).is_activity {
                instance.last_completed = Some((*key, *element));
            }
            remove(instance, *key);
        }
        Event::ElementTerminated { key, .. } => remove(instance, *key),
        Event::SequenceFlowTaken { scope, flow } => {
            if let Some(scope) = instance.scope_mut(*scope) {
                scope.put(*flow, 1);
            }
        }
        Event::TokensRemoved { scope } => {
            if let Some(scope) = instance.scope_mut(*scope) {
                scope.remove_tokens();
            }
        }
        Event::VariablesSet { scope, variables } => set_variables(instance, *scope, variables),
        Event::ResultsMerged { key, .. } => merge_results(instance, *key),
        Event::JobCreated {
            key,
            retries,
            job_type,
            ..
        } => {
            let job_type = job_type.clone();
            stage(
                instance,
                *key,
                Stage::Job {
                    retries: *retries,
                    not_before: None,
                    job_type,
                },
            );
        }
        Event::JobFailed {
            key,
            retries,
            retry_at,
            ..
        } => {
            if let Some(Stage::Job {
                retries: left,
                not_before,
                ..
            }) = stage_mut(instance, *key)
            {
                *left = *retries;
                *not_before = *retry_at;
            }
        }
        Event::JobRetried { key, retries, .. } => {
            if let Some(Stage::Job {
                retries: left,
                not_before,
                ..
            }) = stage_mut(instance, *key)
            {
                *left = *retries;
                *not_before = None;
            }
        }
        Event::JobCompleted { key, variables, .. }
        | Event::ScriptEvaluated { key, variables, .. }
        | Event::UserTaskCompleted { key, variables, .. }
        | Event::ErrorCaught { key, variables, .. }
        | Event::EscalationCaught { key, variables, .. } => {
            stage(
                instance,
                *key,
                Stage::Leaving {
                    results: variables.clone(),
                },
            );
        }
        Event::UserTaskCreated {
            key,
            assignee,
            candidate_groups,
            ..
        } => {
            let (assignee, candidate_groups) = (assignee.clone(), candidate_groups.clone());
            stage(
                instance,
                *key,
                Stage::UserTask {
                    assignee,
                    candidate_groups,
                },
            );
        }
        Event::UserTaskAssigned {
            key, assignee: new, ..
        } => {
            if let Some(Stage::UserTask { assignee, .. }) = stage_mut(instance, *key) {
                assignee.clone_from(new);
            }
        }
        Event::TimerArmed {
            owner,
            element,
            due_at,
            repeat,
        } => {
            let kind = WaitFor::Timer {
                due_at: *due_at,
                repeat: *repeat,
            };
            wait(
                definition,
                instance,
                *owner,
                Wait {
                    element: *element,
                    kind,
                },
            );
        }
        Event::MessageSubscribed {
            owner,
            element,
            name,
            correlation_key,
        } => {
            let kind = WaitFor::Message {
                name: name.clone(),
                correlation_key: correlation_key.clone(),
            };
            wait(
                definition,
                instance,
                *owner,
                Wait {
                    element: *element,
                    kind,
                },
            );
        }
        Event::TimerFired {
            owner,
            element,
            into,
            missed,
            next,
            ..
        } => {
            instance.change_waits(*owner, |waits| {
                let Some(position) = waits.iter().position(|wait| wait.element == *element) else {
                    return;
                };
                match (next, &mut waits[position].kind) {
                    (Some(next), WaitFor::Timer { due_at, repeat }) => {
                        *due_at = *next;
                        *repeat = repeat.map(|repeat| repeat.consumed(*missed));
                    }
                    (None, WaitFor::Timer { .. })
                    | (_, WaitFor::Message { .. } | WaitFor::Signal { .. } | WaitFor::Condition { .. }) => {
                        waits.remove(position);
                    }
                }
            });
            stage(
                instance,
                *into,
                Stage::Leaving {
                    results: Variables::new(),
                },
            );
        }
        Event::MessageCorrelated {
            owner,
            element,
            into,
            variables,
            ..
        }
        | Event::SignalCaught {
            owner,
            element,
            into,
            variables,
        } => {
            if definition.element(*element).behaviour.is_interrupting() {
                instance.change_waits(*owner, |waits| waits.retain(|wait| wait.element != *element));
            }
            let results = variables.clone();
            stage(instance, *into, Stage::Leaving { results });
        }
        Event::SignalSubscribed { owner, element, name } => {
            let kind = WaitFor::Signal { name: name.clone() };
            let element = *element;
            wait(definition, instance, *owner, Wait { element, kind });
        }
        Event::ConditionAwaited { owner, element } => {
            let kind = WaitFor::Condition { held: false };
            let element = *element;
            wait(definition, instance, *owner, Wait { element, kind });
        }
        Event::ConditionMet { owner, element, into } => {
            if definition.element(*element).behaviour.is_interrupting() {
                instance.change_waits(*owner, |waits| waits.retain(|wait| wait.element != *element));
            } else {
                hold(instance, *owner, *element, true);
            }
            let results = Variables::new();
            stage(instance, *into, Stage::Leaving { results });
        }
        Event::ConditionLapsed { owner, element } => hold(instance, *owner, *element, false),
        Event::WaitsClosed { owner, element } => {
            instance.change_waits(*owner, |waits| {
                waits.retain(|wait| definition.event_of(wait.element) != *element);
            });
        }
        Event::GatewayOpened { key, .. } => {
            if let Some(Stage::Joined { open, .. }) = stage_mut(instance, *key) {
                *open = true;
            }
        }
        Event::GatewayReset { key, element } => reset(definition, instance, *key, *element),
        Event::IncidentRaised {
            incident,
            element_instance,
            element,
            resume,
            code,
            message,
        } => {
            let stopped = match resume {
                Resume::Activation | Resume::Completion | Resume::Job | Resume::Listeners => {
                    Some(*element_instance)
                }
                Resume::Tokens => None,
            };
            let stopped = stopped.filter(|key| *key != ElementInstanceKey::ROOT);
            if let Some(stopped) = stopped.and_then(|key| instance.elements.get_mut(&key)) {
                stopped.incident = Some(*incident);
            }
            let (code, message) = (code.clone(), message.clone());
            let state = IncidentState {
                element_instance: stopped,
                element: *element,
                resume: *resume,
                code,
                message,
            };
            instance.incidents.insert(*incident, state);
        }
        Event::IncidentResolved { incident } => {
            let resolved = instance.incidents.remove(incident);
            let stopped = resolved.and_then(|incident| incident.element_instance);
            if let Some(stopped) = stopped.and_then(|key| instance.elements.get_mut(&key)) {
                stopped.incident = None;
            }
        }
    }
}

fn activated(definition: &Definition, instance: &mut Instance, event: &Event) {
    let Event::ElementActivated {
        key,
        element,
        parent,
        flow,
    } = event
    else {
        return;
    };
    let info = definition.element(*element);
    let shape = info.behaviour.shape();
    let mut stage = Stage::Entered;
    if let Some(scope) = instance.scope_mut(*parent) {
        match (shape, flow) {
            (Shape::Join, Some(_)) => scope.take_each(&info.incoming),
            (Shape::Late, Some(_)) => {
                let waits = |flow: &FlowIndex| scope.tokens_on(*flow) > 0;
                let taken: Vec<FlowIndex> = info.incoming.iter().copied().filter(waits).collect();
                scope.take_each(&taken);
                stage = Stage::Joined { taken, open: false };
            }
            (Shape::Plain | Shape::Scope, Some(_)) if info.start_quantity > 1 => {
                let mut wanted = info.start_quantity;
                for flow in &info.incoming {
                    wanted -= scope.take(*flow, wanted);
                }
            }
            (Shape::Plain | Shape::Scope, Some(flow)) => {
                scope.take(*flow, 1);
            }
            (Shape::Plain | Shape::Join | Shape::Late | Shape::Scope, None) => {}
        }
        scope.children.insert(*key);
    }
    if let Some(parent) = stage_mut(instance, *parent)
        && *parent == Stage::Entered
    {
        *parent = Stage::Running;
    }
    let scope = match shape {
        Shape::Scope => Some(Box::new(Scope::default())),
        Shape::Plain | Shape::Join | Shape::Late => None,
    };
    let state = ElementInstance {
        element: *element,
        parent: *parent,
        stage,
        variables: Variables::new(),
        scope,
        waits: Vec::new(),
        incident: None,
    };
    instance.elements.insert(*key, state);
}

fn remove(instance: &mut Instance, key: ElementInstanceKey) {
    let Some(state) = instance.elements.remove(&key) else {
        return;
    };
    instance.listening.remove(&key);
    if let Some(scope) = instance.scope_mut(state.parent) {
        scope.children.remove(&key);
    }
}

fn stage_mut(instance: &mut Instance, key: ElementInstanceKey) -> Option<&mut Stage> {
    instance.elements.get_mut(&key).map(|state| &mut state.stage)
}

fn stage(instance: &mut Instance, key: ElementInstanceKey, next: Stage) {
    if let Some(stage) = stage_mut(instance, key) {
        *stage = next;
    }
}

fn set_variables(instance: &mut Instance, scope: ElementInstanceKey, variables: &Variables) {
    let target = match scope {
        ElementInstanceKey::ROOT => Some(&mut instance.variables),
        key => instance.elements.get_mut(&key).map(|state| &mut state.variables),
    };
    if let Some(target) = target {
        target.merge(variables.clone());
    }
}

fn merge_results(instance: &mut Instance, key: ElementInstanceKey) {
    let Some(Stage::Leaving { results }) = stage_mut(instance, key) else {
        return;
    };
    for (name, value) in std::mem::take(results) {
        let home = instance.home_of(key, &name);
        let target = match home {
            ElementInstanceKey::ROOT => Some(&mut instance.variables),
            key => instance.elements.get_mut(&key).map(|state| &mut state.variables),
        };
        if let Some(target) = target {
            target.set(name, value);
        }
    }
}

/// Remembers whether a condition has been met.
fn hold(instance: &mut Instance, owner: ElementInstanceKey, element: ElementIndex, now: bool) {
    instance.change_waits(owner, |waits| {
        for wait in waits.iter_mut().filter(|wait| wait.element == element) {
            if let WaitFor::Condition { held } = &mut wait.kind {
                *held = now;
            }
        }
    });
}

/// Takes the rest of the tokens of a complex gateway.
fn reset(definition: &Definition, instance: &mut Instance, key: ElementInstanceKey, element: ElementIndex) {
    let Some(state) = instance.elements.get_mut(&key) else {
        return;
    };
    let parent = state.parent;
    let Stage::Joined { taken, .. } = &mut state.stage else {
        return;
    };
    let taken = std::mem::take(taken);
    state.stage = Stage::Entered;
    let rest = definition.element(element).incoming.iter().copied();
    let rest: Vec<FlowIndex> = rest.filter(|flow| !taken.contains(flow)).collect();
    if let Some(scope) = instance.scope_mut(parent) {
        scope.take_each(&rest);
    }
}

/// Notes a wait. An activity only holds the waits of its boundary events, and a scope those of its event sub-processes;
/// everything else waits itself.
fn wait(definition: &Definition, instance: &mut Instance, owner: ElementInstanceKey, wait: Wait) {
    let event = definition.event_of(wait.element);
    if let Some(state) = instance.elements.get_mut(&owner)
        && definition.element(event).host != Some(state.element)
        && definition.listener_of(event).is_none()
    {
        state.stage = Stage::Waiting;
    }
    instance.change_waits(owner, |waits| waits.push(wait));
}
