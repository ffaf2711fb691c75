//! The ad-hoc sub-process: its activities begin at once or one after the other, until its condition holds or nothing is
//! left to do.

use tidegate_model::document::Namespace;
use tidegate_model::{ElementIndex, ElementInstanceKey};

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::element::{Active, Behaviour, Shape};
use crate::event::Event;
use crate::state::{ALL_BEGUN, Scope};
use crate::text::{Computed, Failure};

#[derive(Debug)]
struct AdHocSubProcess {
    is_sequential: bool,
    completion_condition: Option<Computed>,
    cancels_remaining: bool,
    /// The ids of the activities to begin; none for all that no flow leads to.
    active: Option<Computed>,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let element = reader.element;
    let document = reader.document;
    let condition = document
        .child(reader.node, "completionCondition")
        .map(|(_, child)| child);
    let completion_condition = match condition.filter(|child| !child.text.trim().is_empty()) {
        Some(child) => {
            let language = child.attribute("language");
            Some(reader.expression(child.text.trim(), language, child.position)?)
        }
        None => None,
    };
    let zeebe = element.extension(&Namespace::Zeebe, "adHoc");
    let active = match zeebe.and_then(|zeebe| Some((zeebe, zeebe.attribute("activeElementsCollection")?))) {
        Some((zeebe, text)) => Some(reader.feel(text, zeebe.position)?),
        None => None,
    };
    // Some tools write the ordering as an element.
    let inner = document
        .child(reader.node, "adHocOrdering")
        .map(|(_, child)| child.text.trim());
    let ordering = element.attribute("ordering").or(inner);
    Some(Box::new(AdHocSubProcess {
        is_sequential: ordering == Some("Sequential"),
        completion_condition,
        cancels_remaining: element.attribute("cancelRemainingInstances") != Some("false"),
        active,
    }))
}

impl Behaviour for AdHocSubProcess {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        turn.event(Event::AdHocProgressed {
            key: me.key,
            element: me.element,
            begun: 0,
        });
        turn.then(Step::Next(me.key));
        Ok(())
    }

    fn next(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        let Some(begun) = me.state.ad_hoc else {
            return Ok(());
        };
        let scope = me.state.scope.as_deref();
        let is_quiet = scope.is_none_or(Scope::is_empty);
        if begun == ALL_BEGUN {
            if is_quiet {
                turn.then(Step::Complete(me.key));
            }
            return Ok(());
        }
        if let Some(condition) = &self.completion_condition
            && begun > 0
            && condition.truth("the completion condition", &turn.visible(me.key, None))?
        {
            // Once it has held, nothing more begins. An event sub-process that runs comes to its own end.
            let (key, element) = (me.key, me.element);
            turn.close_listeners(key);
            if self.cancels_remaining {
                turn.empty_but_listeners(key);
            }
            turn.event(Event::AdHocClosed { key, element });
            turn.then(Step::Next(key));
            return Ok(());
        }
        let activities = self.activities(turn, me)?;
        let mut open = activities.into_iter().skip(begun as usize).peekable();
        if open.peek().is_none() {
            if is_quiet {
                turn.then(Step::Complete(me.key));
            }
            return Ok(());
        }
        if self.is_sequential && scope.is_some_and(|scope| turn.is_busy(scope)) {
            return Ok(());
        }
        let at_once = if self.is_sequential { 1 } else { usize::MAX };
        let mut begun = begun;
        for activity in open.take(at_once) {
            let key = turn.spawn(activity, me.key);
            turn.then(Step::Activate(key));
            begun += 1;
        }
        turn.event(Event::AdHocProgressed {
            key: me.key,
            element: me.element,
            begun,
        });
        Ok(())
    }

    fn is_watchful(&self) -> bool {
        true
    }

    fn shape(&self) -> Shape {
        Shape::Scope
    }
}

impl AdHocSubProcess {
    fn activities(&self, turn: &Turn<'_>, me: &Active<'_>) -> Result<Vec<ElementIndex>, Box<Failure>> {
        let Some(active) = &self.active else {
            return Ok(me.info.starts.clone());
        };
        let value = active.evaluate("the active elements", &turn.visible(me.key, None))?;
        let ids = value.as_list().unwrap_or_default();
        let wanted = |index: &&ElementIndex| {
            let id = &*turn.definition.element(**index).id;
            ids.iter().any(|wanted| wanted.as_str() == Some(id))
        };
        Ok(me.info.starts.iter().filter(wanted).copied().collect())
    }
}

impl Turn<'_> {
    /// True if something lives in `scope` besides event sub-processes.
    fn is_busy(&self, scope: &Scope) -> bool {
        let is_other = |key: &ElementInstanceKey| {
            let state = self.instance.elements.get(key);
            state.is_some_and(|state| !self.definition.element(state.element).behaviour.is_listener())
        };
        !scope.tokens().is_empty() || scope.children.iter().any(is_other)
    }
}
