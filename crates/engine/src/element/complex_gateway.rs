//! The complex gateway: goes on as soon as its activation condition holds, then waits for the rest of what comes to it
//! before it begins again. The condition is asked when a token comes, and while tokens wait also when variables change.
//!
//! Its expressions see `activationCount`, the tokens that wait before it, and `waitingForStart`, false at the reset. At
//! the reset only flows whose condition speaks of `waitingForStart` are looked at: the others have had their turn.

use tidegate_model::{ElementIndex, ElementInstanceKey, Json, Variables};

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::definition::FlowIndex;
use crate::element::{Active, Behaviour, Shape};
use crate::reach::nothing_more_comes;
use crate::state::{Scope, Stage};
use crate::text::{Computed, Failure};

const ACTIVATION_COUNT: &str = "activationCount";
const WAITING_FOR_START: &str = "waitingForStart";

#[derive(Debug)]
struct ComplexGateway {
    /// None waits like an inclusive gateway.
    activation: Option<Computed>,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let document = reader.document;
    let condition = document
        .child(reader.node, "activationCondition")
        .map(|(_, child)| child);
    let activation = match condition.filter(|condition| !condition.text.trim().is_empty()) {
        Some(condition) => Some(reader.expression_of(condition)?),
        None => None,
    };
    Some(Box::new(ComplexGateway { activation }))
}

/// What its expressions see besides the variables.
fn front(count: usize, waits_for_start: bool) -> Variables {
    let mut front = Variables::new();
    front.set(ACTIVATION_COUNT, Json::of(&count));
    front.set(WAITING_FOR_START, Json::of(&waits_for_start));
    front
}

/// The flows its token came from, and whether it waits for the rest.
fn joined<'a>(me: &Active<'a>) -> (&'a [FlowIndex], bool) {
    match &me.state.stage {
        Stage::Joined { taken, open } => (taken, *open),
        Stage::Entered
        | Stage::Job { .. }
        | Stage::UserTask { .. }
        | Stage::Waiting
        | Stage::Running
        | Stage::Call(_)
        | Stage::Leaving { .. } => (&[], false),
    }
}

impl Behaviour for ComplexGateway {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        turn.then(Step::Complete(me.key));
        Ok(())
    }

    fn leave(&self, turn: &Turn<'_>, me: &Active<'_>) -> Result<Vec<FlowIndex>, Box<Failure>> {
        let (from, resets) = joined(me);
        let front = front(from.len(), !resets);
        let scope = turn.visible(me.key, Some(&front));
        let mut taken = Vec::with_capacity(me.info.outgoing.len());
        for &index in &me.info.outgoing {
            let flow = turn.definition.flow(index);
            let holds = match &flow.condition {
                None => !resets && me.info.default != Some(index),
                Some(condition) if resets && !condition.text.contains(WAITING_FOR_START) => false,
                Some(condition) => condition.truth(
                    &format!("the condition of flow `{}` from `{}`", flow.id, me.info.id),
                    &scope,
                )?,
            };
            if holds {
                taken.push(index);
            }
        }
        match me.info.default {
            _ if resets || !taken.is_empty() || me.info.outgoing.is_empty() => Ok(taken),
            Some(default) => Ok(vec![default]),
            None => Err(turn.no_flow(me)),
        }
    }

    fn is_ready(
        &self,
        turn: &Turn<'_>,
        place: ElementInstanceKey,
        scope: &Scope,
        gateway: ElementIndex,
    ) -> Result<bool, Box<Failure>> {
        let info = turn.definition.element(gateway);
        if info.incoming.len() < 2 {
            return Ok(true);
        }
        let Some(activation) = &self.activation else {
            return Ok(nothing_more_comes(
                turn.definition,
                turn.instance,
                scope,
                gateway,
                &[],
            ));
        };
        let waiting = info.incoming.iter().map(|flow| scope.tokens_on(*flow) as usize);
        let front = front(waiting.sum(), true);
        activation.truth(
            &format!("the activation condition of `{}`", info.id),
            &turn.visible(place, Some(&front)),
        )
    }

    fn asks_variables(&self) -> bool {
        self.activation.is_some()
    }

    fn stays(&self, me: &Active<'_>) -> bool {
        joined(me).0.len() < me.info.incoming.len()
    }

    fn shape(&self) -> Shape {
        Shape::Late
    }
}
