//! The bytes of a journal row: refused, or replayed to a state that is whole, and shown to people.

use tidegate_engine::{Instance, decode_events, encode_events, history, replay};

use super::snapshot::look;
use crate::model;

pub fn run(bytes: &[u8]) {
    let Some((definition, bytes)) = model::choose(bytes) else {
        return;
    };
    let Ok(events) = decode_events(bytes) else { return };
    assert_eq!(decode_events(&encode_events(&events)).as_ref(), Ok(&events));
    let _ = history(definition, &events, 1);
    let mut instance = Instance::new(model::KEY);
    if replay(definition, &mut instance, bytes).is_ok() {
        look(definition, &instance);
    }
}
