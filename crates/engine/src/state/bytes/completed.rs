//! What can be compensated, as bytes: the completed activities, and the earlier values that they see.

use std::collections::HashMap;
use std::sync::Arc;

use minicbor::data::Type;
use minicbor::decode::Decoder;
use tidegate_model::{ElementInstanceKey, Json, Variables};

use super::{Out, Written, skip_to};
use crate::codec::{CorruptState, KeyBase, key, length};
use crate::state::{Completed, CompletedActivities, Earlier, LARGE};

const PARTS: u64 = 8;
/// Parts that every completed activity has; the data of one that has no more are whole.
const PARTS_OF_FIRST: u64 = 6;

/// Writes the completed activities.
pub(super) fn write(
    out: &mut Out<'_>,
    base: &mut KeyBase,
    completed: &CompletedActivities,
    large: &mut Large,
) -> Written {
    out.array(completed.len() as u64)?;
    for (scope, order, completed) in completed.iter() {
        out.array(PARTS)?;
        key::encode(&scope, out, base)?;
        out.u64(order)?;
        key::encode(&completed.key, out, base)?;
        out.encode(completed.element)?.bool(completed.only_inside)?;
        out.map(completed.variables.0.len() as u64)?;
        for (name, value) in completed.variables.iter() {
            out.str(name)?;
            large.write(out, value)?;
        }
        out.bool(completed.is_handled)?.bool(completed.is_whole)?;
    }
    Ok(())
}

/// Reads them.
pub(super) fn read(
    decoder: &mut Decoder<'_>,
    base: &mut KeyBase,
    large: &mut Large,
) -> Result<CompletedActivities, CorruptState> {
    let mut all = CompletedActivities::default();
    for _ in 0..length(decoder)? {
        let parts = length(decoder)?;
        let scope: ElementInstanceKey = key::decode(decoder, base)?;
        let order = decoder.u64()?;
        let mut completed = Completed {
            key: key::decode(decoder, base)?,
            element: decoder.decode()?,
            only_inside: decoder.bool()?,
            is_handled: false,
            is_whole: true,
            variables: Variables::new(),
        };
        let variables = decoder.map()?;
        let variables = variables.ok_or_else(|| CorruptState::new("variables of unknown count"))?;
        for _ in 0..variables {
            let name: Arc<str> = Arc::from(decoder.str()?);
            completed.variables.set(name, large.read(decoder)?);
        }
        if parts as u64 >= PARTS {
            completed.is_handled = decoder.bool()?;
            completed.is_whole = decoder.bool()?;
            skip_to(decoder, parts, PARTS)?;
        } else {
            skip_to(decoder, parts, PARTS_OF_FIRST)?;
        }
        // What is inside is younger than what it is inside of, so there are no circles.
        if completed.key <= scope {
            return Err(CorruptState::new("a completed activity inside itself"));
        }
        if all.holds(completed.key) {
            return Err(CorruptState::new("an activity that completed twice"));
        }
        all.put(scope, order, completed);
    }
    Ok(all)
}

/// Writes the earlier values, and the scopes that ended abnormally.
pub(super) fn write_past(
    out: &mut Out<'_>,
    base: &mut KeyBase,
    completed: &CompletedActivities,
    large: &mut Large,
) -> Written {
    let past = &completed.past;
    out.array(past.seen.len() as u64 * 2)?;
    for (scope, newest) in &past.seen {
        key::encode(scope, out, base)?;
        out.u64(*newest)?;
    }
    out.array(past.earlier.len() as u64)?;
    for ((scope, name), kept) in &past.earlier {
        key::encode(scope, out, base)?;
        out.str(name)?.array(kept.len() as u64 * 2)?;
        for earlier in kept {
            out.u64(earlier.until)?;
            match &earlier.value {
                Some(value) => large.write(out, value)?,
                None => out.null()?.ok()?,
            }
        }
    }
    out.array(completed.abnormal.len() as u64)?;
    let mut abnormal = completed.abnormal.iter();
    abnormal.try_for_each(|scope| key::encode(scope, out, base))
}

/// Reads them.
pub(super) fn read_past(
    decoder: &mut Decoder<'_>,
    base: &mut KeyBase,
    completed: &mut CompletedActivities,
    large: &mut Large,
) -> Result<(), CorruptState> {
    let past = &mut completed.past;
    for _ in 0..length(decoder)? / 2 {
        let scope = key::decode(decoder, base)?;
        past.seen.insert(scope, decoder.u64()?);
    }
    for _ in 0..length(decoder)? {
        let scope = key::decode(decoder, base)?;
        let name = Arc::from(decoder.str()?);
        let mut kept: Vec<Earlier> = Vec::new();
        for _ in 0..length(decoder)? / 2 {
            let until = decoder.u64()?;
            if kept.last().is_some_and(|last| last.until >= until) {
                return Err(CorruptState::new("earlier values out of order"));
            }
            let value = match decoder.datatype()? {
                Type::Null => {
                    decoder.null()?;
                    None
                }
                _ => Some(large.read(decoder)?),
            };
            let earlier = Earlier { until, value };
            past.bytes += earlier.bytes();
            kept.push(earlier);
        }
        if past.earlier.insert((scope, name), kept).is_some() {
            return Err(CorruptState::new("the earlier values of a variable twice"));
        }
    }
    for _ in 0..length(decoder)? {
        completed.abnormal.insert(key::decode(decoder, base)?);
    }
    Ok(())
}

/// Large values that were written before and are not written again.
#[derive(Default)]
pub(super) struct Large {
    /// Their places by where their text is.
    written: HashMap<*const u8, u64>,
    read: Vec<Json>,
}

impl Large {
    /// Knows the values that the instance itself holds now.
    pub(super) fn of(variables: &Variables) -> Self {
        let mut large = Self::default();
        for (_, value) in variables.iter().filter(|(_, value)| value.text().len() >= LARGE) {
            large.add(value);
        }
        large
    }

    fn add(&mut self, value: &Json) {
        self.written.insert(value.text().as_ptr(), self.read.len() as u64);
        self.read.push(value.clone());
    }

    fn write(&mut self, out: &mut Out<'_>, value: &Json) -> Written {
        if value.text().len() < LARGE {
            return out.str(value.text())?.ok();
        }
        match self.written.get(&value.text().as_ptr()) {
            Some(place) => out.u64(*place)?.ok(),
            None => {
                self.add(value);
                out.str(value.text())?.ok()
            }
        }
    }

    fn read(&mut self, decoder: &mut Decoder<'_>) -> Result<Json, CorruptState> {
        if decoder.datatype()? == Type::String {
            let value = decoder.decode::<Json>()?;
            if value.text().len() >= LARGE {
                self.add(&value);
            }
            return Ok(value);
        }
        let place = usize::try_from(decoder.u64()?).unwrap_or(usize::MAX);
        let value = self.read.get(place).cloned();
        value.ok_or_else(|| CorruptState::new("a value that is not there"))
    }
}
