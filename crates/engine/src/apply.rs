//! Applying: changes the state as an event says. Decides nothing and refuses nothing.

use tidegate_model::{ElementInstanceKey, Variables};

use crate::definition::Definition;
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
        | Event::ErrorCaught { key, variables, .. } => {
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
            if let Some(owner) = instance.elements.get_mut(owner)
                && let Some(position) = owner.waits.iter().position(|wait| wait.element == *element)
            {
                match (next, &mut owner.waits[position].kind) {
                    (Some(next), WaitFor::Timer { due_at, repeat }) => {
                        *due_at = *next;
                        *repeat = repeat.map(|repeat| repeat.consumed(*missed));
                    }
                    (None, WaitFor::Timer { .. }) | (_, WaitFor::Message { .. }) => {
                        owner.waits.remove(position);
                    }
                }
            }
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
        } => {
            if definition.element(*element).behaviour.is_interrupting()
                && let Some(owner) = instance.elements.get_mut(owner)
            {
                owner.waits.retain(|wait| wait.element != *element);
            }
            stage(
                instance,
                *into,
                Stage::Leaving {
                    results: variables.clone(),
                },
            );
        }
        Event::IncidentRaised {
            incident,
            element_instance,
            element,
            resume,
            code,
            message,
        } => {
            let stopped = match resume {
                Resume::Activation | Resume::Completion | Resume::Job => Some(*element_instance),
                Resume::Tokens => None,
            };
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
    if let Some(scope) = instance.scope_mut(*parent) {
        match (shape, flow) {
            (Shape::Join, Some(_)) => scope.take_each(&info.incoming),
            (Shape::Plain | Shape::Scope, Some(_)) if info.start_quantity > 1 => {
                let mut wanted = info.start_quantity;
                for flow in &info.incoming {
                    wanted -= scope.take(*flow, wanted);
                }
            }
            (Shape::Plain | Shape::Scope, Some(flow)) => {
                scope.take(*flow, 1);
            }
            (Shape::Plain | Shape::Join | Shape::Scope, None) => {}
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
        Shape::Plain | Shape::Join => None,
    };
    let state = ElementInstance {
        element: *element,
        parent: *parent,
        stage: Stage::Entered,
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

/// Notes a wait. An activity only holds the waits of its boundary events; everything else waits itself.
fn wait(definition: &Definition, instance: &mut Instance, owner: ElementInstanceKey, wait: Wait) {
    let Some(state) = instance.elements.get_mut(&owner) else {
        return;
    };
    if definition.element(wait.element).host != Some(state.element) {
        state.stage = Stage::Waiting;
    }
    state.waits.push(wait);
}
