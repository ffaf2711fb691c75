//! BPMN errors go outward from where they are thrown until a boundary event or an event sub-process catches them.

use tidegate_model::{ElementIndex, ElementInstanceKey, Json, Variables};

use crate::decide::{Step, Turn};
use crate::element::Behaviour;
use crate::event::Event;

/// Tells whether an event catches what is thrown with this code; none stands for every code.
type Catches<'c> = &'c dyn Fn(&dyn Behaviour, Option<&str>) -> bool;

impl Turn<'_> {
    /// Throws an error from an element instance: caught by the nearest event of that code, an event for every code
    /// coming after one for this code, or else the end of the instance.
    pub(crate) fn throw(
        &mut self,
        key: ElementInstanceKey,
        code: &str,
        message: String,
        variables: Variables,
    ) {
        let Some(thrower) = self.instance.elements.get(&key) else {
            return;
        };
        let element = thrower.element;
        self.event(Event::ErrorThrown {
            key,
            element,
            code: code.to_owned(),
            message: message.clone(),
        });
        let catches = |behaviour: &dyn Behaviour, wanted: Option<&str>| {
            behaviour
                .catches()
                .is_some_and(|catch| catch.code.as_deref() == wanted)
        };
        match self.catcher_of(key, code, &catches) {
            Some((place, source)) => self.catch(place, source, code, message, variables),
            None => {
                self.end_everything();
                self.event(Event::InstanceFaulted {
                    element,
                    code: code.to_owned(),
                    message,
                });
            }
        }
    }

    /// The nearest event that catches what is thrown at `from`, and the element instance or scope it stands at: in a
    /// scope the starts of its event sub-processes come first, then what is attached to it.
    pub(crate) fn catcher_of(
        &self,
        from: ElementInstanceKey,
        code: &str,
        catches: Catches<'_>,
    ) -> Option<(ElementInstanceKey, ElementIndex)> {
        let (definition, instance) = (self.definition, self.instance);
        let pick = |events: &[ElementIndex]| {
            let wanted = |wanted: Option<&str>| {
                let sources = events.iter().flat_map(|event| definition.sources(event)).copied();
                let mut sources = sources;
                sources.find(|source| catches(&*definition.element(*source).behaviour, wanted))
            };
            wanted(Some(code)).or_else(|| wanted(None))
        };
        for place in instance.outward(from) {
            let state = instance.elements.get(&place);
            let element = state.map(|state| state.element);
            let is_loop = state.is_some_and(|state| state.turns().is_some());
            if place != from && !is_loop && !self.is_interrupted(place) {
                let listeners = definition.listeners(element);
                let starts: Vec<ElementIndex> = listeners
                    .iter()
                    .flat_map(|listener| definition.element(*listener).starts.iter().copied())
                    .collect();
                if let Some(source) = pick(&starts) {
                    return Some((place, source));
                }
            }
            // The events attached to a repeated activity belong to the whole of it.
            if state.is_some_and(|state| state.turn().is_some()) {
                continue;
            }
            if let Some(source) = element.and_then(|element| pick(&definition.element(element).boundaries)) {
                return Some((place, source));
            }
        }
        None
    }

    /// True if an interrupting event sub-process has taken over the scope: it is all that lives there.
    pub(crate) fn is_interrupted(&self, scope: ElementInstanceKey) -> bool {
        let Some(scope) = self.instance.scope(scope) else {
            return false;
        };
        let mut children = scope.children.iter();
        let (Some(only), None) = (children.next(), children.next()) else {
            return false;
        };
        let only = self
            .instance
            .elements
            .get(only)
            .map(|state| self.definition.element(state.element));
        let starts = only
            .filter(|info| info.behaviour.is_listener())
            .map(|info| &info.starts);
        let mut starts = starts.into_iter().flatten();
        starts.any(|start| self.definition.element(*start).behaviour.is_interrupting())
    }

    /// Begins the event that catches at `place`.
    pub(crate) fn caught_at(&mut self, place: ElementInstanceKey, event: ElementIndex) -> ElementInstanceKey {
        if let Some(listener) = self.definition.listener_of(event) {
            return self.begin_listener(place, listener, event);
        }
        let host = self.instance.elements.get(&place);
        let parent = host.map_or(ElementInstanceKey::ROOT, |host| host.parent);
        self.spawn(event, parent)
    }

    /// Ends what a catching event at `place` interrupts.
    pub(crate) fn interrupt_at(&mut self, place: ElementInstanceKey, event: ElementIndex) {
        let listens = self.definition.listener_of(event).is_some();
        self.interrupt(self.instance.as_owner(place), listens);
    }

    fn catch(
        &mut self,
        place: ElementInstanceKey,
        source: ElementIndex,
        code: &str,
        message: String,
        mut variables: Variables,
    ) {
        let definition = self.definition;
        if let Some(catch) = definition.element(source).behaviour.catches() {
            if let Some(name) = &catch.code_variable {
                variables.set(&**name, Json::of(code));
            }
            if let Some(name) = &catch.message_variable {
                variables.set(&**name, Json::of(&message));
            }
        }
        let event = definition.event_of(source);
        let key = self.caught_at(place, event);
        self.event(Event::ErrorCaught {
            key,
            element: event,
            code: code.to_owned(),
            variables,
        });
        self.interrupt_at(place, event);
        self.then(Step::Complete(key));
    }
}
