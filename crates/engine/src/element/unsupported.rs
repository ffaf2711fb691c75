//! Elements of the standard that are not executed yet. They are refused by name, never passed over.

use crate::compile::Reader;
use crate::element::Behaviour;

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let tag = reader.element.tag.clone();
    reader.unsupported(&format!("a `{tag}` element"))
}
