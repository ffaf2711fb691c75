//! The bytes of a stored state: refused, or read as a state that is whole.

use tidegate_engine::{Definition, Instance, outstanding};

use crate::model;

pub fn run(bytes: &[u8]) {
    let Some((definition, bytes)) = model::choose(bytes) else {
        return;
    };
    if let Ok(instance) = Instance::decode(bytes) {
        assert_eq!(Instance::decode(&instance.encode()).as_ref(), Ok(&instance));
        look(definition, &instance);
    }
}

/// What a runtime does with a state that it has read.
pub fn look(definition: &Definition, instance: &Instance) {
    if let Ok(again) = Instance::decode(&instance.encode()) {
        assert_eq!(again, *instance);
    }
    if instance.check(definition).is_err() {
        return;
    }
    let _ = (instance.tokens(definition), instance.waiting_for(definition));
    let _ = outstanding(definition, instance);
}
