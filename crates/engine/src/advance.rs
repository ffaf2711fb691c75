//! The loop: decide and apply alternate on the live state until nothing follows.

use std::collections::{BTreeSet, VecDeque};

use tidegate_model::{
    Cause, Command, Effect, ElementIndex, ElementInstanceKey, KeyGenerator, Rejection, Timestamp,
};

use crate::apply::apply;
use crate::decide::{Decision, Step, Turn};
use crate::definition::{Definition, FlowIndex};
use crate::effects::{closed_by, opened_by};
use crate::element::Shape;
use crate::event::Event;
use crate::state::Instance;

/// Turns of repeated activities that one command may lead to, for each step that it may take: a turn has a bound of its
/// own far more often than a token that goes round.
const TURNS_A_STEP: usize = 10;

/// Decides one step from the state as it is. Only a [`Step::Command`] can be refused.
///
/// # Errors
/// The command does not fit the state.
pub fn decide(
    definition: &Definition,
    instance: &Instance,
    step: Step,
    now: Timestamp,
    keys: &mut KeyGenerator,
) -> Result<Decision, Rejection> {
    let mut out = Decision::default();
    decide_into(definition, instance, step, now, keys, &mut out)?;
    Ok(out)
}

fn decide_into(
    definition: &Definition,
    instance: &Instance,
    step: Step,
    now: Timestamp,
    keys: &mut KeyGenerator,
    out: &mut Decision,
) -> Result<(), Rejection> {
    let mut turn = Turn {
        definition,
        instance,
        now,
        keys,
        out,
    };
    match step {
        Step::Command(command) => turn.command(command.kind)?,
        Step::Enter { scope, flow } => turn.enter(scope, flow),
        Step::Activate(key) => turn.activate(key),
        Step::Complete(key) => turn.complete(key),
        Step::Leave(key) => turn.leave(key),
        Step::Next(key) => turn.next(key),
        Step::Call(key) => turn.again(key),
        Step::EnterScope(key) => turn.enter_scope(key),
        Step::CloseScope(scope) => turn.close_scope(scope),
        Step::Listen(scope) => turn.listen(scope),
        Step::Arm { owner, event, except } => turn.arm_again(owner, event, except),
        Step::Signal { name, variables } => turn.signal_here(&name, &variables),
        Step::CatchSignal {
            owner,
            element,
            variables,
        } => drop(turn.signal(owner, element, variables)),
        Step::Escalate { key, code, variables } => turn.escalate(key, &code, variables),
        Step::FailInterrupted(key) => turn.fail_interrupted(key),
        Step::Thrown(key) => turn.then(Step::Complete(key)),
        Step::Conditions => turn.conditions(),
        Step::Condition { owner, element } => turn.condition(owner, element),
        Step::Join(scope) => turn.join(scope),
    }
    Ok(())
}

/// Gives `instance` a command and follows it to rest. The events are appended to `events`, behind one
/// [`Event::Caused`]; the effects, which may leave after these events are committed, to `effects`.
///
/// A model that goes round without waiting is stopped by an incident after a fixed number of activations.
///
/// # Errors
/// The command does not fit the state. Nothing was changed then.
pub fn advance(
    definition: &Definition,
    instance: &mut Instance,
    mut command: Command,
    now: Timestamp,
    keys: &mut KeyGenerator,
    events: &mut Vec<Event>,
    effects: &mut Vec<Effect>,
) -> Result<(), Rejection> {
    let mut decision = Decision::default();
    // No decision looks at its cause.
    let cause = std::mem::replace(&mut command.cause, Cause::Engine);
    decide_into(
        definition,
        instance,
        Step::Command(command),
        now,
        keys,
        &mut decision,
    )?;
    events.push(Event::Caused { time: now, cause });
    follow(definition, instance, decision, now, keys, events, effects)
}

/// Applies a decision and what follows from it, to rest.
pub(crate) fn follow(
    definition: &Definition,
    instance: &mut Instance,
    mut decision: Decision,
    now: Timestamp,
    keys: &mut KeyGenerator,
    events: &mut Vec<Event>,
    effects: &mut Vec<Effect>,
) -> Result<(), Rejection> {
    let mut queue = VecDeque::with_capacity(8);
    // Scopes in which something moved since their late joins were last asked.
    let mut moved = BTreeSet::new();
    let (mut entered, mut turned) = (0, 0);
    loop {
        let mut variables_changed = false;
        for event in decision.events.drain(..) {
            if definition.late_joins > 0 {
                moved.extend(place_of(instance, &event));
            }
            variables_changed |= matches!(event, Event::VariablesSet { .. } | Event::ResultsMerged { .. });
            closed_by(definition, instance, &event, effects);
            apply(definition, instance, &event);
            opened_by(definition, instance, &event, effects);
            events.push(event);
        }
        queue.extend(decision.follow_ups.drain(..));
        if variables_changed && definition.has_conditions && instance.has_conditions() {
            queue.push_back(Step::Conditions);
        }
        if variables_changed && definition.has_data_joins {
            moved.extend(asked_again(definition, instance));
        }
        let step = match queue.pop_front() {
            Some(step) => step,
            None if entered > definition.limits.steps => return Ok(()),
            None => match moved.pop_first() {
                Some(scope) => Step::Join(scope),
                None => return Ok(()),
            },
        };
        if let Step::Enter { scope, flow } = step
            && definition.element(definition.flow(flow).target).behaviour.shape() == Shape::Late
        {
            moved.insert(scope);
        }
        if let Some(element) = counted(definition, instance, &step) {
            if entered > definition.limits.steps {
                continue;
            }
            entered += 1;
            if entered > definition.limits.steps {
                let mut turn = Turn {
                    definition,
                    instance,
                    now,
                    keys,
                    out: &mut decision,
                };
                turn.too_many("too-many-steps", "took too many steps without waiting", element);
                continue;
            }
        }
        if let Step::Next(key) = step {
            turned += 1;
            if turned > definition.limits.steps.saturating_mul(TURNS_A_STEP) {
                turned = 0;
                let mut turn = Turn {
                    definition,
                    instance,
                    now,
                    keys,
                    out: &mut decision,
                };
                turn.too_many_turns(key);
                continue;
            }
        }
        decide_into(definition, instance, step, now, keys, &mut decision)?;
    }
}

/// The scopes in which tokens wait before a gateway that variables can make ready.
fn asked_again(definition: &Definition, instance: &Instance) -> impl Iterator<Item = ElementInstanceKey> {
    let asks = |flow: FlowIndex| {
        let gateway = definition.element(definition.flow(flow).target);
        gateway.behaviour.asks_variables()
    };
    let scopes = instance.scopes_with_tokens();
    scopes
        .filter(move |(_, scope)| scope.tokens().iter().any(|(flow, _)| asks(*flow)))
        .map(|(key, _)| key)
}

/// The element whose turn it is, for the steps that a model without an end takes again and again.
fn counted(definition: &Definition, instance: &Instance, step: &Step) -> Option<ElementIndex> {
    match step {
        Step::Enter { flow, .. } => Some(definition.flow(*flow).target),
        Step::Conditions => instance.internal_waits().next().map(|(_, wait)| wait.element),
        Step::Command(_)
        | Step::Activate(_)
        | Step::Complete(_)
        | Step::Leave(_)
        | Step::Next(_)
        | Step::Call(_)
        | Step::EnterScope(_)
        | Step::CloseScope(_)
        | Step::Listen(_)
        | Step::Arm { .. }
        | Step::Signal { .. }
        | Step::CatchSignal { .. }
        | Step::Escalate { .. }
        | Step::FailInterrupted(_)
        | Step::Thrown(_)
        | Step::Condition { .. }
        | Step::Join(_) => None,
    }
}

/// The scope in which `event` moves or ends a token, seen from the state before it.
fn place_of(before: &Instance, event: &Event) -> Option<ElementInstanceKey> {
    if let Event::SequenceFlowTaken { scope, .. }
    | Event::TokensRemoved { scope }
    | Event::TokensTaken { scope, .. } = event
    {
        Some(*scope)
    } else if let Event::ElementCompleted { key, .. }
    | Event::ElementTerminated { key, .. }
    | Event::GatewayOpened { key, .. } = event
    {
        before.elements.get(key).map(|state| state.parent)
    } else {
        None
    }
}
