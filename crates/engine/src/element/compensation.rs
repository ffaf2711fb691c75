//! Compensation: the events that ask for it, the boundary event that names a handler, and the start event of a
//! sub-process that compensates the one around it.
//!
//! The event that asks holds a scope. In it the handlers run one after the other, the last completed activity first,
//! each with the data as of the completion of its activity. An event that does not wait lets its token go on at once.

use std::sync::Arc;

use tidegate_model::document::NodeId;
use tidegate_model::{ElementIndex, ElementInstanceKey};

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::definition::FlowIndex;
use crate::element::{Active, Behaviour, Shape};
use crate::event::Event;
use crate::state::{Role, Scope};
use crate::text::Failure;

pub(crate) const DEFINITION: &str = "compensateEventDefinition";

/// Asks for compensation, and waits for it unless it says otherwise.
#[derive(Debug)]
struct CompensationThrow {
    /// The activity; none for everything in the scope.
    activity: Option<Arc<str>>,
    is_end: bool,
    waits: bool,
}

/// A boundary event whose association names the handler, or the start event of a sub-process that is one.
#[derive(Debug)]
struct CompensationCatch;

/// Reads an intermediate throw event or end event that asks for compensation.
pub(super) fn read_throw(reader: &mut Reader<'_>, definition: NodeId) -> Option<Box<dyn Behaviour>> {
    let document = reader.document;
    let activity = document.get(definition).attribute("activityRef").map(str::trim);
    let activity = activity.filter(|reference| !reference.is_empty());
    if let Some(reference) = activity
        && document.by_id(reference).is_none()
    {
        let position = document.get(definition).attribute_position("activityRef");
        let message = format!("there is no activity `{reference}`");
        let hint = "set activityRef to the id of an activity, or remove it to compensate the scope";
        return reader.refuse_at(position, "dangling-reference", &message, hint);
    }
    let waits = document
        .get(definition)
        .attribute("waitForCompletion")
        .map(str::trim);
    Some(Box::new(CompensationThrow {
        activity: activity.map(Arc::from),
        is_end: reader.element.tag == "endEvent",
        waits: !matches!(waits, Some("false" | "0")),
    }))
}

/// Reads a compensation boundary event, or a compensation start event.
pub(super) fn read_catch() -> Option<Box<dyn Behaviour>> {
    Some(Box::new(CompensationCatch))
}

/// True if the event sub-process that is read compensates the sub-process around it.
pub(super) fn begins(reader: &Reader<'_>) -> bool {
    let document = reader.document;
    let starts = document
        .children(reader.node)
        .filter(|(_, child)| child.tag == "startEvent");
    starts
        .into_iter()
        .any(|(start, _)| document.child(start, DEFINITION).is_some())
}

impl Behaviour for CompensationThrow {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        if !self.waits && !self.is_end {
            let (key, element) = (me.key, me.element);
            let flows = turn.split(me)?;
            turn.event(Event::CompensationDetached { key, element });
            turn.take_all(me.state.parent, flows, me.info.completion_quantity);
        }
        turn.then(Step::Next(me.key));
        Ok(())
    }

    fn next(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        if !turn.compensate(me, self.activity.as_deref()) {
            turn.then(Step::Complete(me.key));
        }
        Ok(())
    }

    fn leave(&self, turn: &Turn<'_>, me: &Active<'_>) -> Result<Vec<FlowIndex>, Box<Failure>> {
        if self.is_end || me.state.role == Role::Detached {
            Ok(Vec::new())
        } else {
            turn.split(me)
        }
    }

    fn is_watchful(&self) -> bool {
        true
    }

    fn shape(&self) -> Shape {
        Shape::Scope
    }
}

impl Behaviour for CompensationCatch {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        turn.then(Step::Complete(me.key));
        Ok(())
    }

    fn is_compensation(&self) -> bool {
        true
    }
}

/// What is compensated next.
enum Found {
    Handler(ElementIndex),
    /// Everything inside it has been compensated.
    Spent,
}

impl Turn<'_> {
    /// Goes on with the compensation that `me` asked for: of one activity, or of the scope it stands in. False when
    /// there is no more to do.
    pub(crate) fn compensate(&mut self, me: &Active<'_>, activity: Option<&str>) -> bool {
        if !me.state.scope.as_deref().is_none_or(Scope::is_empty) {
            return true;
        }
        let Some((scope, order, found)) = self.last_completed(me.state.parent, activity) else {
            return false;
        };
        match found {
            Found::Handler(element) => {
                let key = self.next_key();
                self.event(Event::CompensationActivated {
                    key,
                    element,
                    parent: me.key,
                    scope,
                    order,
                });
                self.then(Step::Activate(key));
            }
            Found::Spent => {
                let order = Some(order);
                self.event(Event::CompensationEnded { scope, order });
                self.then(Step::Next(me.key));
            }
        }
        true
    }

    fn last_completed(
        &self,
        from: ElementInstanceKey,
        activity: Option<&str>,
    ) -> Option<(ElementInstanceKey, u64, Found)> {
        let completed = &self.instance.completed;
        let definition = self.definition;
        let fits = |element: ElementIndex| activity.is_none_or(|id| &*definition.element(element).id == id);
        let mut scope = self.instance.compensated_scope(from, definition);
        if activity.is_some() {
            // The activity may stand in a scope around this one.
            let holds =
                |scope: &ElementInstanceKey| completed.open_in(*scope).any(|(_, one)| fits(one.element));
            if !holds(&scope) {
                scope = self.instance.outward(scope).find(holds)?;
            }
        }
        let (mut order, mut last) = completed.open_in(scope).find(|(_, one)| fits(one.element))?;
        loop {
            let info = definition.element(last.element);
            let handler = info.compensation.or(info.compensation_sub_process);
            match handler.filter(|_| !last.only_inside) {
                Some(handler) => return Some((scope, order, Found::Handler(handler))),
                None => match completed.open_in(last.key).next() {
                    Some((inner_order, inner)) => {
                        scope = last.key;
                        (order, last) = (inner_order, inner);
                    }
                    None => return Some((scope, order, Found::Spent)),
                },
            }
        }
    }
}
