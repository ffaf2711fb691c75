//! A row of the journal onto a state, where both were read from a disk that may have damaged them.

use tidegate_model::{ElementIndex, ElementInstanceKey};

use crate::apply::apply;
use crate::codec::{CorruptState, decode_events};
use crate::definition::{Definition, FlowIndex};
use crate::event::Event;
use crate::state::Instance;

/// Reads the events of one commit and applies them to `instance`, which must have passed [`Instance::check`].
///
/// [`apply`] takes events as the engine decides them. What comes from a store is looked at first: an event that names
/// an element, a flow or a scope that is not there is no event of this instance.
///
/// # Errors
/// The bytes are damaged, of a later version, or belong to another instance. `instance` is then of no use.
pub fn replay(definition: &Definition, instance: &mut Instance, row: &[u8]) -> Result<(), CorruptState> {
    for event in decode_events(row)? {
        let place = place(&event);
        place.check(definition)?;
        if let Some((key, parent)) = place.activated {
            fits(instance, key, parent)?;
        }
        if let Event::Migrated { elements, flows, .. } = &event {
            lands(definition, elements, flows)?;
        }
        apply(definition, instance, &event);
    }
    Ok(())
}

/// What an instance was carried over to is in the definition it has now.
fn lands(
    definition: &Definition,
    elements: &[(ElementIndex, ElementIndex)],
    flows: &[(FlowIndex, FlowIndex)],
) -> Result<(), CorruptState> {
    let elements = elements.iter().map(|(_, element)| Place {
        element: Some(*element),
        ..Place::default()
    });
    let flows = flows.iter().map(|(_, flow)| Place {
        flow: Some(*flow),
        ..Place::default()
    });
    elements
        .chain(flows)
        .try_for_each(|place| place.check(definition))
}

/// What an event says of where it happened.
#[derive(Default)]
struct Place {
    element: Option<ElementIndex>,
    flow: Option<FlowIndex>,
    /// A new element instance and the scope it is in.
    activated: Option<(ElementInstanceKey, ElementInstanceKey)>,
}

impl Place {
    fn check(&self, definition: &Definition) -> Result<(), CorruptState> {
        let is_element = |index: ElementIndex| index.index() < definition.elements.len();
        let is_flow = |index: FlowIndex| index.index() < definition.flows.len();
        match self.element.is_none_or(is_element) && self.flow.is_none_or(is_flow) {
            true => Ok(()),
            false => Err(CorruptState::new("an event of another definition")),
        }
    }
}

/// A parent is always older than what is inside it, so there are no circles.
fn fits(
    instance: &mut Instance,
    key: ElementInstanceKey,
    parent: ElementInstanceKey,
) -> Result<(), CorruptState> {
    let is_new = parent < key && !instance.elements.contains_key(&key);
    match is_new && instance.scope_mut(parent).is_some() {
        true => Ok(()),
        false => Err(CorruptState::new("an element instance without a scope")),
    }
}

fn place(event: &Event) -> Place {
    match event {
        Event::ElementActivated {
            key,
            element,
            parent,
            flow,
        } => Place {
            element: Some(*element),
            flow: *flow,
            activated: Some((*key, *parent)),
        },
        Event::LoopTurnActivated {
            key, element, parent, ..
        }
        | Event::CompensationActivated {
            key, element, parent, ..
        } => Place {
            element: Some(*element),
            activated: Some((*key, *parent)),
            ..Place::default()
        },
        Event::SequenceFlowTaken { flow, .. } | Event::TokensTaken { flow, .. } => Place {
            flow: Some(*flow),
            ..Place::default()
        },
        Event::InstanceStarted { element, .. } => Place {
            element: *element,
            ..Place::default()
        },
        Event::InstanceFaulted { element, .. }
        | Event::ElementCompleted { element, .. }
        | Event::ElementTerminated { element, .. }
        | Event::ResultsMerged { element, .. }
        | Event::JobCreated { element, .. }
        | Event::JobCompleted { element, .. }
        | Event::JobFailed { element, .. }
        | Event::JobRetried { element, .. }
        | Event::ScriptEvaluated { element, .. }
        | Event::UserTaskCreated { element, .. }
        | Event::UserTaskAssigned { element, .. }
        | Event::UserTaskCompleted { element, .. }
        | Event::TimerArmed { element, .. }
        | Event::TimerFired { element, .. }
        | Event::MessageSubscribed { element, .. }
        | Event::MessageCorrelated { element, .. }
        | Event::ErrorThrown { element, .. }
        | Event::ErrorCaught { element, .. }
        | Event::IncidentRaised { element, .. }
        | Event::ActivityInterrupted { element, .. }
        | Event::MessagePublished { element, .. }
        | Event::SignalThrown { element, .. }
        | Event::SignalSubscribed { element, .. }
        | Event::SignalCaught { element, .. }
        | Event::EscalationThrown { element, .. }
        | Event::EscalationCaught { element, .. }
        | Event::EscalationUncaught { element, .. }
        | Event::ConditionAwaited { element, .. }
        | Event::ConditionMet { element, .. }
        | Event::ConditionLapsed { element, .. }
        | Event::WaitsClosed { element, .. }
        | Event::GatewayOpened { element, .. }
        | Event::GatewayReset { element, .. }
        | Event::LoopStarted { element, .. }
        | Event::LoopOutputCollected { element, .. }
        | Event::LoopEnded { element, .. }
        | Event::ChildCalled { element, .. }
        | Event::ChildEnded { element, .. }
        | Event::TransactionCancelled { element, .. }
        | Event::AdHocProgressed { element, .. }
        | Event::ChildCancelRequested { element, .. }
        | Event::ActivityAbandoned { element, .. }
        | Event::CompensationKept { element, .. }
        | Event::CompensationDetached { element, .. }
        | Event::AdHocClosed { element, .. }
        | Event::ScopeEntered { element, .. } => Place {
            element: Some(*element),
            ..Place::default()
        },
        Event::Caused { .. }
        | Event::InstanceCompleted
        | Event::InstanceCancelled
        | Event::TokensRemoved { .. }
        | Event::VariablesSet { .. }
        | Event::IncidentResolved { .. }
        | Event::WorkflowInterrupted { .. }
        | Event::CrashRecovered { .. }
        | Event::InstanceHeld { .. }
        | Event::Migrated { .. }
        | Event::HistoryTrimmed { .. }
        | Event::CancelRequested { .. }
        | Event::InstanceReleased { .. }
        | Event::CompensationEnded { .. } => Place::default(),
    }
}
