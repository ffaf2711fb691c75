//! Applying: changes the state as an event says. Decides nothing and refuses nothing.

use tidegate_model::{ElementIndex, ElementInstanceKey, Json, Variables};

use crate::definition::{Definition, FlowIndex};
use crate::element::Shape;
use crate::event::{ChildOutcome, Event, Resume};
use crate::state::{
    ALL_BEGUN, Call, Completed, ElementInstance, Handles, IncidentState, Instance, Phase, Role, Stage, Turns,
    Wait, WaitFor,
};

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
        | Event::HistoryTrimmed { .. }
        | Event::ActivityAbandoned { .. } => {}
        Event::InstanceHeld { hold } => {
            if let Some(hold) = hold {
                instance.control.hold(hold);
            }
        }
        Event::InstanceReleased { origins, shift_ms } => {
            instance.control.release(origins);
            if let Some(shift_ms) = shift_ms {
                instance.shift(*shift_ms);
            }
        }
        Event::CancelRequested { cancellation } => {
            instance.control.cancellation = Some((**cancellation).clone());
        }
        Event::ChildCancelRequested { key, .. } => {
            if let Some(Stage::Call(call)) = stage_mut(instance, *key) {
                call.is_cancelled = true;
            }
        }
        Event::InstanceStarted { variables, .. } => {
            instance.phase = Phase::Running;
            instance.variables = variables.clone();
        }
        Event::InstanceCompleted => ended(instance, Phase::Completed),
        Event::InstanceCancelled => ended(instance, Phase::Cancelled),
        Event::InstanceFaulted { .. } => ended(instance, Phase::Faulted),
        Event::ElementActivated { .. } => activated(definition, instance, event),
        Event::ElementCompleted { key, element } => {
            if definition.element(*element).is_activity {
                instance.last_completed = Some((*key, *element));
            }
            keep_completed(definition, instance, *key);
            remove(instance, *key, true);
        }
        Event::ElementTerminated { key, .. } => {
            if !instance.completed.is_empty() && !instance.completed.holds(*key) {
                instance.completed.forget(*key);
            }
            remove(instance, *key, false);
        }
        Event::SequenceFlowTaken { scope, flow } => {
            instance.change_tokens(*scope, |scope| scope.put(*flow, 1));
        }
        Event::TokensRemoved { scope } => {
            instance.change_tokens(*scope, crate::state::Scope::remove_tokens);
        }
        Event::VariablesSet { scope, variables } => instance.set_variables(*scope, variables.clone()),
        Event::ResultsMerged { key, element } => {
            let from = match definition.element(*element).is_for_compensation {
                // It sees the data as of completion; what it gives belongs to the data of now.
                true => instance
                    .elements
                    .get(key)
                    .map_or(ElementInstanceKey::ROOT, |state| state.parent),
                false => *key,
            };
            merge_results(instance, *key, from);
        }
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
                    is_interrupted: false,
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
        Event::ActivityInterrupted { key, .. } => {
            if let Some(Stage::Job { is_interrupted, .. }) = stage_mut(instance, *key) {
                *is_interrupted = true;
            }
        }
        Event::JobRetried { key, retries, .. } => {
            if let Some(Stage::Job {
                retries: left,
                not_before,
                is_interrupted,
                ..
            }) = stage_mut(instance, *key)
            {
                *left = *retries;
                *not_before = None;
                *is_interrupted = false;
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
            details,
            ..
        } => stage(
            instance,
            *key,
            Stage::UserTask {
                assignee: assignee.clone(),
                candidate_groups: candidate_groups.clone(),
                details: details.clone(),
            },
        ),
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
                Resume::Activation | Resume::Completion | Resume::Job | Resume::Next | Resume::Call => {
                    Some(*element_instance)
                }
                Resume::Tokens | Resume::Listeners | Resume::Nothing => None,
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
        Event::LoopStarted {
            key, total, items, ..
        } => {
            if let Some(state) = instance.elements.get_mut(key) {
                state.role = Role::Loop(Box::new(Turns {
                    total: *total,
                    items: items.clone(),
                    ..Turns::default()
                }));
                state.stage = Stage::Running;
                state.scope.get_or_insert_default();
            }
        }
        Event::LoopTurnActivated { key, element, parent } => {
            turn_activated(definition, instance, *key, *element, *parent)
        }
        Event::LoopOutputCollected { key, value, .. } => {
            let turn = instance
                .elements
                .get(key)
                .and_then(|state| Some((state.parent, state.turn()? as usize)));
            if let Some((parent, turn)) = turn
                && let Some(turns) = turns_mut(instance, parent)
                && turn <= turns.begun as usize
            {
                if turns.outputs.len() < turn {
                    turns.outputs.resize(turn, None);
                }
                turns.outputs[turn - 1] = Some(value.clone());
            }
        }
        Event::LoopEnded { key, element } => {
            let collection = definition.element(*element).repetition.as_deref();
            let collection = collection.and_then(|repetition| repetition.output_collection());
            if let Some(turns) = turns_mut(instance, *key) {
                let outputs = std::mem::take(&mut turns.outputs);
                turns.items = None;
                let mut results = Variables::new();
                if let Some(name) = collection {
                    results.set(std::sync::Arc::clone(name), list(&outputs));
                }
                stage(instance, *key, Stage::Leaving { results });
            }
        }
        Event::ChildCalled {
            key,
            child,
            process_id,
            binding,
            variables,
            business_key,
            ..
        } => {
            let call = Call {
                child: *child,
                process_id: process_id.clone(),
                binding: binding.clone(),
                variables: variables.clone(),
                business_key: business_key.clone(),
                is_cancelled: false,
            };
            stage(instance, *key, Stage::Call(Box::new(call)));
        }
        Event::ChildEnded {
            key,
            outcome,
            variables,
            ..
        } => {
            let next = match outcome {
                ChildOutcome::Completed | ChildOutcome::Faulted => Stage::Leaving {
                    results: variables.clone(),
                },
                ChildOutcome::Cancelled | ChildOutcome::NotStarted => Stage::Entered,
            };
            stage(instance, *key, next);
        }
        Event::CompensationActivated {
            key,
            element,
            parent,
            scope,
            order,
        } => compensated(definition, instance, (*key, *element, *parent), (*scope, *order)),
        Event::CompensationEnded { scope, order } => match order {
            Some(order) => instance.completed.remove(*scope, *order),
            None => instance.completed.end_abnormally(*scope),
        },
        Event::CompensationKept { key, .. } => keep_for_cancelled(instance, *key),
        Event::TransactionCancelled { into, .. } => {
            stage(
                instance,
                *into,
                Stage::Leaving {
                    results: Variables::new(),
                },
            );
        }
        Event::AdHocProgressed { key, begun, .. } => {
            if let Some(state) = instance.elements.get_mut(key) {
                state.ad_hoc = Some(*begun);
                state.stage = Stage::Running;
            }
        }
        Event::CompensationDetached { key, .. } => {
            if let Some(state) = instance.elements.get_mut(key) {
                state.role = Role::Detached;
            }
        }
        Event::AdHocClosed { key, .. } => {
            if let Some(state) = instance.elements.get_mut(key) {
                state.ad_hoc = Some(ALL_BEGUN);
            }
        }
        Event::Migrated {
            from,
            elements,
            flows,
            ..
        } => instance.carry_over(*from, elements, flows),
        Event::TokensTaken { scope, flow, count } => {
            instance.change_tokens(*scope, |scope| {
                scope.take(*flow, *count);
            });
        }
        Event::ScopeEntered { key, .. } => stage(instance, *key, Stage::Running),
    }
}

fn ended(instance: &mut Instance, phase: Phase) {
    instance.phase = phase;
    instance.completed.clear();
}

/// Keeps what has just completed, if it can be compensated.
fn keep_completed(definition: &Definition, instance: &mut Instance, key: ElementInstanceKey) {
    let Some(state) = instance.elements.get(&key) else {
        return;
    };
    let info = definition.element(state.element);
    let is_loop = state.turns().is_some();
    let was_abnormal = instance.completed.was_abnormal(key);
    let has_inner = instance.completed.has(key);
    let has_handler = !is_loop && (info.compensation.is_some() || info.compensation_sub_process.is_some());
    // What a handler did cannot be undone once more.
    let is_kept =
        info.is_activity && !info.is_for_compensation && !was_abnormal && (has_inner || has_handler);
    // Its own handler undoes it as a whole.
    let is_closed = info.compensation.is_some() && !is_loop;
    if (!is_kept || is_closed) && !instance.completed.is_empty() {
        instance.completed.forget(key);
    }
    if is_kept {
        keep(instance, key, is_loop);
    }
}

/// Keeps an activity that has ended, with its own variables.
fn keep(instance: &mut Instance, key: ElementInstanceKey, only_inside: bool) {
    let Some(state) = instance.elements.get(&key) else {
        return;
    };
    let completed = Completed {
        key,
        element: state.element,
        only_inside,
        is_handled: false,
        is_whole: false,
        variables: state.variables.clone(),
    };
    let scopes: Vec<ElementInstanceKey> = instance.outward(state.parent).collect();
    instance.completed.insert(&scopes, instance.sequence, completed);
}

/// A cancelled transaction ends an element instance: what completed inside it is compensated all the same, and so is
/// what it was compensating.
fn keep_for_cancelled(instance: &mut Instance, key: ElementInstanceKey) {
    let handles = instance
        .elements
        .get(&key)
        .and_then(|state| state.handles.as_deref());
    if let Some((scope, order)) = handles.map(|handles| (handles.scope, handles.order)) {
        if let Some(completed) = instance.completed.get_mut(scope, order) {
            completed.is_handled = false;
        }
    } else if instance.completed.has(key) {
        keep(instance, key, true);
    }
}

/// Activates the handler of a completed activity, with the data as of completion.
fn compensated(
    definition: &Definition,
    instance: &mut Instance,
    (key, element, parent): (ElementInstanceKey, ElementIndex, ElementInstanceKey),
    (scope, order): (ElementInstanceKey, u64),
) {
    let Some(completed) = instance.completed.get_mut(scope, order) else {
        return;
    };
    completed.is_handled = true;
    let completed = completed.clone();
    let is_inside = definition.element(element).parent == Some(completed.element);
    let variables = instance.seen_by(&completed, scope, order);
    insert(definition, instance, (key, element, parent), false);
    if let Some(state) = instance.elements.get_mut(&key) {
        state.variables = variables;
        // What belongs to the activity that is undone ends with the handler inside it.
        let own = completed.variables.iter().map(|(name, _)| name.to_string());
        state.handles = Some(Box::new(Handles {
            scope,
            order,
            inside: is_inside.then_some(completed.key),
            own: own.filter(|_| is_inside && !completed.is_whole).collect(),
            written: std::collections::BTreeSet::new(),
        }));
    }
}

fn turn_activated(
    definition: &Definition,
    instance: &mut Instance,
    key: ElementInstanceKey,
    element: ElementIndex,
    parent: ElementInstanceKey,
) {
    insert(definition, instance, (key, element, parent), true);
    let Some(turns) = turns_mut(instance, parent) else {
        return;
    };
    turns.begun += 1;
    let turn = turns.begun;
    let item = turns
        .items
        .as_ref()
        .and_then(|items| items.get(turn as usize - 1))
        .cloned();
    let mut variables = Variables::new();
    let output = definition.element(element).repetition.as_deref();
    if let Some(name) = output.and_then(|repetition| repetition.output_variable()) {
        variables.set(name, Json::trusted("null"));
    }
    variables.set(crate::element::LOOP_COUNTER, Json::of(&turn));
    let name = definition.element(element).repetition.as_deref();
    if let Some(name) = name.and_then(|repetition| repetition.input_element()) {
        variables.set(
            std::sync::Arc::clone(name),
            item.unwrap_or_else(|| Json::trusted("null")),
        );
    }
    if let Some(state) = instance.elements.get_mut(&key) {
        state.role = Role::Turn(turn);
        state.variables = variables;
    }
}

fn turns_mut(instance: &mut Instance, key: ElementInstanceKey) -> Option<&mut Turns> {
    match &mut instance.elements.get_mut(&key)?.role {
        Role::Loop(turns) => Some(turns),
        Role::Plain | Role::Turn(_) | Role::Compensates(_) | Role::AdHoc(_) | Role::Detached => None,
    }
}

/// The JSON list of what the turns gave; null for a turn that gave nothing.
fn list(outputs: &[Option<Json>]) -> Json {
    let size: usize = outputs
        .iter()
        .map(|value| value.as_ref().map_or(4, |value| value.text().len()) + 1)
        .sum();
    let mut text = String::with_capacity(size + 2);
    text.push('[');
    for (position, value) in outputs.iter().enumerate() {
        if position > 0 {
            text.push(',');
        }
        text.push_str(value.as_ref().map_or("null", Json::text));
    }
    text.push(']');
    Json::trusted(text)
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
    let mut begins_as = Stage::Entered;
    instance.change_tokens(*parent, |scope| match (shape, flow) {
        (Shape::Join, Some(_)) => scope.take_each(&info.incoming),
        (Shape::Late, Some(_)) => {
            let waits = |flow: &FlowIndex| scope.tokens_on(*flow) > 0;
            let taken: Vec<FlowIndex> = info.incoming.iter().copied().filter(waits).collect();
            scope.take_each(&taken);
            begins_as = Stage::Joined { taken, open: false };
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
    });
    insert(definition, instance, (*key, *element, *parent), false);
    if begins_as != Stage::Entered {
        stage(instance, *key, begins_as);
    }
}

fn insert(
    definition: &Definition,
    instance: &mut Instance,
    (key, element, parent): (ElementInstanceKey, ElementIndex, ElementInstanceKey),
    is_turn: bool,
) {
    if let Some(scope) = instance.scope_mut(parent) {
        scope.children.insert(key);
    }
    if let Some(parent) = stage_mut(instance, parent)
        && *parent == Stage::Entered
    {
        *parent = Stage::Running;
    }
    let info = definition.element(element);
    let is_loop = info.repetition.is_some() && !is_turn;
    let scope = match info.behaviour.shape() {
        _ if is_loop => Some(Box::default()),
        Shape::Scope => Some(Box::default()),
        Shape::Plain | Shape::Join | Shape::Late => None,
    };
    let state = ElementInstance {
        element,
        parent,
        stage: Stage::Entered,
        variables: Variables::new(),
        scope,
        waits: Vec::new(),
        incident: None,
        role: Role::Plain,
        handles: None,
        ad_hoc: None,
    };
    instance.elements.insert(key, state);
}

fn remove(instance: &mut Instance, key: ElementInstanceKey, completed: bool) {
    let Some(state) = instance.elements.remove(&key) else {
        return;
    };
    instance.listening.remove(&key);
    instance.with_tokens.remove(&key);
    if let Some(scope) = instance.scope_mut(state.parent) {
        scope.children.remove(&key);
    }
    if let Role::Compensates(scope) = state.role {
        instance.completed.forget(scope);
    }
    if let Some(handles) = &state.handles
        && let Some(handled) = instance.completed.get_mut(handles.scope, handles.order)
        && handled.is_handled
    {
        instance.completed.remove(handles.scope, handles.order);
    }
    instance.completed.was_abnormal(key);
    if state.turn().is_some()
        && let Some(turns) = turns_mut(instance, state.parent)
    {
        turns.completed += u32::from(completed);
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

fn merge_results(instance: &mut Instance, key: ElementInstanceKey, from: ElementInstanceKey) {
    let Some(Stage::Leaving { results }) = stage_mut(instance, key) else {
        return;
    };
    for (name, value) in std::mem::take(results) {
        let home = instance.home_of(from, &name);
        instance.set_variables(home, [(name, value)]);
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
    instance.change_tokens(parent, |scope| scope.take_each(&rest));
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
