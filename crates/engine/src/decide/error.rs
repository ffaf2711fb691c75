//! BPMN errors go outward from where they are thrown until a boundary event catches them.

use tidegate_model::{ElementIndex, ElementInstanceKey, Json, Variables};

use crate::decide::{Step, Turn};
use crate::event::Event;

impl Turn<'_> {
    /// Throws an error from an element instance: caught by the nearest boundary event of that code, a boundary event
    /// for every code coming after one for this code, or else the end of the instance.
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
        let hosts = self
            .instance
            .outward(key)
            .filter(|host| *host != ElementInstanceKey::ROOT);
        let caught = hosts
            .filter_map(|host| Some((host, self.catcher(host, code)?)))
            .next();
        match caught {
            Some((host, boundary)) => self.catch(host, boundary, code, message, variables),
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

    fn catcher(&self, host: ElementInstanceKey, code: &str) -> Option<ElementIndex> {
        let host = self.instance.elements.get(&host)?;
        // The events attached to a repeated activity belong to the whole of it.
        if host.turn().is_some() {
            return None;
        }
        let boundaries = &self.definition.element(host.element).boundaries;
        let catching = |wanted: Option<&str>| {
            boundaries.iter().copied().find(|boundary| {
                let catch = self.definition.element(*boundary).behaviour.catches();
                catch.is_some_and(|catch| catch.code.as_deref() == wanted)
            })
        };
        catching(Some(code)).or_else(|| catching(None))
    }

    fn catch(
        &mut self,
        host: ElementInstanceKey,
        boundary: ElementIndex,
        code: &str,
        message: String,
        mut variables: Variables,
    ) {
        let definition = self.definition;
        let parent = self
            .instance
            .elements
            .get(&host)
            .map_or(ElementInstanceKey::ROOT, |host| host.parent);
        if let Some(catch) = definition.element(boundary).behaviour.catches() {
            if let Some(name) = &catch.code_variable {
                variables.set(&**name, Json::of(code));
            }
            if let Some(name) = &catch.message_variable {
                variables.set(&**name, Json::of(&message));
            }
        }
        let key = self.spawn(boundary, parent);
        self.event(Event::ErrorCaught {
            key,
            element: boundary,
            code: code.to_owned(),
            variables,
        });
        self.terminate(host);
        self.then(Step::Complete(key));
    }
}
