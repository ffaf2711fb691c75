//! The loop: decide and apply alternate on the live state until nothing follows.

use std::collections::VecDeque;

use tidegate_model::{Command, Effect, KeyGenerator, Rejection, Timestamp};

use crate::apply::apply;
use crate::decide::{Decision, Step, Turn};
use crate::definition::Definition;
use crate::effects::{closed_by, opened_by};
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
        Step::CloseScope(scope) => turn.close_scope(scope),
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
    command: Command,
    now: Timestamp,
    keys: &mut KeyGenerator,
    events: &mut Vec<Event>,
    effects: &mut Vec<Effect>,
) -> Result<(), Rejection> {
    let mut decision = Decision::default();
    let cause = command.cause.clone();
    decide_into(
        definition,
        instance,
        Step::Command(command),
        now,
        keys,
        &mut decision,
    )?;
    events.push(Event::Caused { time: now, cause });
    let mut queue = VecDeque::with_capacity(8);
    let (mut entered, mut turned) = (0, 0);
    loop {
        for event in decision.events.drain(..) {
            closed_by(definition, instance, &event, effects);
            apply(definition, instance, &event);
            opened_by(definition, instance, &event, effects);
            events.push(event);
        }
        queue.extend(decision.follow_ups.drain(..));
        let Some(step) = queue.pop_front() else {
            return Ok(());
        };
        if let Step::Enter { flow, .. } = step {
            if entered > definition.limits.steps {
                continue;
            }
            entered += 1;
            if entered > definition.limits.steps {
                let element = definition.flow(flow).target;
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
