//! What operators do: hold, let go, cancel bit by bit.

use std::collections::BTreeSet;

use tidegate_model::{
    Cancellation, CommandKind, ElementIndex, ElementInstanceKey, Hold, InstanceKey, Rejection,
};

use crate::decide::Turn;
use crate::event::{ChildOutcome, Event, Resume};
use crate::state::{ElementInstance, Stage};
use crate::text::Failure;

/// True for what an instance takes although its cancellation was asked for.
pub(crate) fn fits_cancelling(kind: &CommandKind) -> bool {
    matches!(
        kind,
        CommandKind::RequestCancel(_)
            | CommandKind::ContinueCancel { .. }
            | CommandKind::AbandonActivity { .. }
            | CommandKind::Cancel
            | CommandKind::ChildCompleted { .. }
            | CommandKind::ChildFaulted { .. }
            | CommandKind::ChildCancelled { .. }
            | CommandKind::ChildNotStarted { .. }
            | CommandKind::Interrupt(_)
            | CommandKind::RecoverCrashed { .. }
    )
}

impl Turn<'_> {
    /// An operator suspends the instance. The same hold once more changes nothing.
    pub(crate) fn hold(&mut self, hold: Box<Hold>) {
        if !self.instance.control.holds.contains(&*hold) {
            self.event(Event::InstanceHeld { hold: Some(hold) });
        }
    }

    /// An operator lets the instance go. Without such a hold nothing changes.
    pub(crate) fn release(&mut self, wanted: &[InstanceKey]) {
        let control = &self.instance.control;
        let is_wanted = |hold: &&Hold| wanted.is_empty() || wanted.contains(&hold.origin);
        let origins: Vec<_> = control
            .holds
            .iter()
            .filter(is_wanted)
            .map(|hold| hold.origin)
            .collect();
        if origins.is_empty() {
            return;
        }
        let shift_ms = control.stood_still(&origins, self.now);
        self.event(Event::InstanceReleased { origins, shift_ms });
    }

    /// Somebody wants the instance to end. Asked again, only a shorter patience changes anything.
    pub(crate) fn request_cancel(&mut self, mut cancellation: Box<Cancellation>) {
        if let Some(standing) = &self.instance.control.cancellation {
            let is_shorter = match (cancellation.patience_ms, standing.patience_ms) {
                (Some(new), Some(old)) => new < old,
                (Some(_), None) => true,
                (None, _) => false,
            };
            if !is_shorter {
                return;
            }
            cancellation.is_unheard &= standing.is_unheard;
        }
        self.event(Event::CancelRequested { cancellation });
    }

    /// Ends up to `most` element instances, the youngest first, so that nothing ends before what is inside it. A call is
    /// asked to end and stays until its instance has.
    pub(crate) fn continue_cancel(&mut self, most: usize, running: &[ElementInstanceKey]) {
        let instance = self.instance;
        let Some(cancellation) = &instance.control.cancellation else {
            return;
        };
        let waits_for_none = cancellation.patience_ms == Some(0);
        let running: BTreeSet<_> = running.iter().copied().collect();
        let mut gone: BTreeSet<ElementInstanceKey> = BTreeSet::new();
        let mut asked = 0;
        for (&key, state) in instance.elements.iter().rev() {
            if gone.len() + asked >= most {
                return;
            }
            if let Some(call) = state.call().filter(|_| !waits_for_none) {
                if !call.is_cancelled {
                    asked += 1;
                    self.event(Event::ChildCancelRequested {
                        key,
                        element: state.element,
                        child: call.child,
                    });
                }
                continue;
            }
            let mut inside = state.scope.iter().flat_map(|scope| &scope.children);
            if running.contains(&key) || inside.any(|child| !gone.contains(child)) {
                continue;
            }
            self.end_of_cancel(key, state);
            gone.insert(key);
        }
        if gone.len() == instance.elements.len() {
            self.cancelled();
        }
    }

    fn end_of_cancel(&mut self, key: ElementInstanceKey, state: &ElementInstance) {
        if let Some(incident) = state.incident {
            self.event(Event::IncidentResolved { incident });
        }
        self.event(Event::ElementTerminated {
            key,
            element: state.element,
        });
    }

    fn cancelled(&mut self) {
        self.close_listeners(self.instance.as_owner(ElementInstanceKey::ROOT));
        if !self.instance.root.tokens().is_empty() {
            self.event(Event::TokensRemoved {
                scope: ElementInstanceKey::ROOT,
            });
        }
        self.resolve_token_incidents();
        self.event(Event::InstanceCancelled);
    }

    /// A called instance has ended, however it did, while this one is being cancelled: its call ends, and what has nothing
    /// left inside it.
    pub(crate) fn call_gone(&mut self, owner: ElementInstanceKey, child: InstanceKey, outcome: ChildOutcome) {
        let instance = self.instance;
        let Some(state) = instance.elements.get(&owner) else {
            return;
        };
        self.event(Event::ChildEnded {
            key: owner,
            element: state.element,
            child,
            outcome,
            variables: tidegate_model::Variables::new(),
        });
        let (mut key, mut state) = (owner, state);
        loop {
            self.end_of_cancel(key, state);
            let Some(around) = instance.scope(state.parent) else {
                return;
            };
            if around.children.len() > 1 {
                return;
            }
            if state.parent == ElementInstanceKey::ROOT {
                return self.cancelled();
            }
            key = state.parent;
            match instance.elements.get(&key) {
                Some(next) => state = next,
                None => return,
            }
        }
    }

    /// A handler that does not stop is no longer waited for.
    pub(crate) fn abandon(&mut self, job: ElementInstanceKey) -> Result<(), Rejection> {
        let state = self.instance.elements.get(&job);
        let state = state.filter(|state| matches!(state.stage, Stage::Job { .. }));
        let element = state.ok_or(Rejection::NoSuchJob(job))?.element;
        self.event(Event::ActivityAbandoned { key: job, element });
        Ok(())
    }

    /// What was accepted cannot be done: a person has to see it.
    pub(crate) fn refuse_stimulus(&mut self, message: String) {
        let failure = Failure {
            code: "stimulus-refused",
            message,
        };
        self.incident(
            ElementInstanceKey::ROOT,
            ElementIndex(0),
            Resume::Nothing,
            failure,
        );
    }
}
