//! The state as bytes: a version byte, then one CBOR array whose tail may grow.

mod completed;

use std::collections::BTreeMap;

use completed::Large;
use minicbor::Encoder;
use minicbor::data::Type;
use minicbor::decode::Decoder;
use minicbor::encode::Error as EncodeError;
use tidegate_model::{DefinitionKey, ElementIndex, ElementInstanceKey, IncidentKey, InstanceKey, Variables};

use crate::codec::{CorruptState, KeyBase, VERSION, finished, key, length, open};
use crate::definition::{Definition, FlowIndex};
use crate::state::{
    Control, ElementInstance, Handles, IncidentState, Instance, Phase, Role, Scope, Stage, Wait,
};

const PARTS: u64 = 14;
/// Parts of a state that has one definition all its life.
const PARTS_WITHOUT_ORIGIN: u64 = 13;
/// Parts of a state on which nobody has acted.
const PARTS_WITHOUT_CONTROL: u64 = 12;
/// Parts of a state without earlier values of variables and without scopes that ended abnormally.
const PARTS_OF_PLAIN: u64 = 10;
/// Parts that every state has; what came later is at its end.
const PARTS_OF_FIRST: u64 = 9;
/// Parts of an element instance, without what only a handler has.
const ELEMENT_PARTS: u64 = 9;
const HANDLER_PARTS: u64 = 10;
const AD_HOC_PARTS: u64 = 11;
const INCIDENT_PARTS: u64 = 6;

type Written = Result<(), EncodeError<std::convert::Infallible>>;
type Out<'a> = Encoder<&'a mut Vec<u8>>;

impl Instance {
    /// Writes the state.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(128);
        bytes.push(VERSION);
        let written = self.write(&mut Encoder::new(&mut bytes));
        debug_assert!(written.is_ok(), "a vector takes everything");
        bytes
    }

    /// Reads a state.
    ///
    /// # Errors
    /// The bytes are damaged or of a later version.
    pub fn decode(bytes: &[u8]) -> Result<Self, CorruptState> {
        let mut decoder = open(bytes)?;
        let instance = read(&mut decoder)?;
        finished(&decoder, bytes)?;
        instance.linked()
    }

    /// Checks that every index of the state is one of `definition`.
    ///
    /// # Errors
    /// The state belongs to another definition.
    pub fn check(&self, definition: &Definition) -> Result<(), CorruptState> {
        let element = |index: ElementIndex| index.index() < definition.elements.len();
        let scope = |scope: &Scope| {
            scope
                .tokens()
                .iter()
                .all(|(flow, _)| flow.index() < definition.flows.len())
        };
        let waits = |waits: &[Wait]| waits.iter().all(|wait| element(wait.element));
        let stage = |stage: &Stage| match stage {
            Stage::Joined { taken, .. } => taken.iter().all(|flow| flow.index() < definition.flows.len()),
            Stage::Entered
            | Stage::Job { .. }
            | Stage::UserTask { .. }
            | Stage::Waiting
            | Stage::Running
            | Stage::Call(_)
            | Stage::Leaving { .. } => true,
        };
        let whole = scope(&self.root)
            && waits(&self.waits)
            && self.incidents.values().all(|incident| element(incident.element))
            && self.last_completed.is_none_or(|(_, index)| element(index))
            && self
                .completed
                .iter()
                .all(|(_, _, completed)| element(completed.element))
            && self.elements.values().all(|instance| {
                element(instance.element)
                    && waits(&instance.waits)
                    && stage(&instance.stage)
                    && instance.scope.as_deref().is_none_or(scope)
            });
        match whole {
            true => Ok(()),
            false => Err(CorruptState::new(format!(
                "it does not belong to this version of `{}`",
                definition.process_id
            ))),
        }
    }

    fn write(&self, out: &mut Out<'_>) -> Written {
        let base = &mut KeyBase(self.key.0);
        let completed = &self.completed;
        let has_control = !self.control.is_empty();
        let is_plain = !has_control
            && self.origin.is_none()
            && completed.past.seen.is_empty()
            && completed.abnormal.is_empty();
        out.array(match (is_plain, has_control, self.origin) {
            (true, _, _) => PARTS_OF_PLAIN,
            (false, false, None) => PARTS_WITHOUT_CONTROL,
            (false, true, None) => PARTS_WITHOUT_ORIGIN,
            (false, _, Some(_)) => PARTS,
        })?
        .u64(self.key.0)?
        .encode(self.phase)?
        .u64(self.sequence)?
        .encode(&self.variables)?;
        write_tokens(out, &self.root)?;
        out.array(self.elements.len() as u64)?;
        for (element_key, element) in &self.elements {
            out.array(match (&element.handles, element.ad_hoc) {
                (_, Some(_)) => AD_HOC_PARTS,
                (Some(_), None) => HANDLER_PARTS,
                (None, None) => ELEMENT_PARTS,
            })?;
            key::encode(element_key, out, base)?;
            out.encode(element.element)?;
            key::encode(&element.parent, out, base)?;
            out.encode(&element.stage)?.encode(&element.variables)?;
            match &element.scope {
                Some(scope) => write_tokens(out, scope)?,
                None => out.null()?.ok()?,
            }
            out.encode(&element.waits)?;
            key::encode(&element.incident.unwrap_or(IncidentKey(0)), out, base)?;
            out.encode(&element.role)?;
            match (&element.handles, element.ad_hoc) {
                (Some(handles), _) => out.encode(handles)?.ok()?,
                (None, Some(_)) => out.null()?.ok()?,
                (None, None) => {}
            }
            if let Some(begun) = element.ad_hoc {
                out.u32(begun)?;
            }
        }
        out.array(self.incidents.len() as u64)?;
        for (incident_key, incident) in &self.incidents {
            out.array(INCIDENT_PARTS)?;
            key::encode(incident_key, out, base)?;
            key::encode(
                &incident.element_instance.unwrap_or(ElementInstanceKey::ROOT),
                out,
                base,
            )?;
            out.encode(incident.element)?.encode(incident.resume)?;
            out.str(&incident.code)?.str(&incident.message)?;
        }
        match &self.last_completed {
            Some((element_key, element)) => {
                key::encode(element_key, out, base)?;
                out.encode(element)?;
            }
            None => {
                out.u8(0)?.u8(0)?;
            }
        }
        let mut large = Large::of(&self.variables);
        completed::write(out, base, completed, &mut large)?;
        out.encode(&self.waits)?;
        if is_plain {
            return Ok(());
        }
        completed::write_past(out, base, completed, &mut large)?;
        if has_control || self.origin.is_some() {
            out.encode(&self.control)?;
        }
        if let Some(origin) = self.origin {
            out.u64(origin.0)?;
        }
        Ok(())
    }

    /// Derives the links between the parts and refuses a state whose parts do not fit.
    fn linked(mut self) -> Result<Self, CorruptState> {
        let waiting = self.elements.iter().map(|(key, state)| (*key, &state.waits));
        let waiting = waiting.chain([(ElementInstanceKey(self.key.0), &self.waits)]);
        self.listening = waiting
            .filter(|(_, waits)| waits.iter().any(|wait| wait.kind.is_internal()))
            .map(|(owner, _)| owner)
            .collect();
        let with_tokens = self.elements.iter().filter(|(_, state)| {
            let scope = state.scope.as_deref();
            scope.is_some_and(|scope| !scope.tokens().is_empty())
        });
        self.with_tokens = with_tokens.map(|(key, _)| *key).collect();
        let links: Vec<_> = self
            .elements
            .iter()
            .map(|(child, element)| (*child, element.parent))
            .collect();
        for (child, parent) in links {
            // A parent is always older than what is inside it, so there are no circles.
            let scope = if parent < child {
                self.scope_mut(parent)
            } else {
                None
            };
            scope
                .ok_or_else(|| CorruptState::new("an element instance without a scope"))?
                .children
                .insert(child);
        }
        for (incident_key, incident) in &self.incidents {
            let Some(stopped) = incident.element_instance else {
                continue;
            };
            if self.elements.get(&stopped).and_then(|element| element.incident) != Some(*incident_key) {
                return Err(CorruptState::new("an incident without its element instance"));
            }
        }
        let mut stopped = self.elements.values().filter_map(|element| element.incident);
        match stopped.all(|incident| self.incidents.contains_key(&incident)) {
            true => Ok(self),
            false => Err(CorruptState::new("an element instance without its incident")),
        }
    }
}

fn write_tokens(out: &mut Out<'_>, scope: &Scope) -> Written {
    out.array(scope.tokens().len() as u64 * 2)?;
    for (flow, count) in scope.tokens() {
        out.encode(flow)?.u32(*count)?;
    }
    Ok(())
}

fn read(decoder: &mut Decoder<'_>) -> Result<Instance, CorruptState> {
    let parts = length(decoder)?;
    let mut instance = Instance::new(InstanceKey(decoder.u64()?));
    let base = &mut KeyBase(instance.key.0);
    instance.phase = decoder.decode::<Phase>()?;
    instance.sequence = decoder.u64()?;
    instance.variables = decoder.decode::<Variables>()?;
    instance.root = read_tokens(decoder)?;
    instance.elements = read_elements(decoder, base)?;
    instance.incidents = read_incidents(decoder, base)?;
    let last: ElementInstanceKey = key::decode(decoder, base)?;
    let element = decoder.decode::<ElementIndex>()?;
    instance.last_completed = (last != ElementInstanceKey::ROOT).then_some((last, element));
    if (parts as u64) < PARTS_OF_PLAIN {
        skip_to(decoder, parts, PARTS_OF_FIRST)?;
        return Ok(instance);
    }
    let mut large = Large::of(&instance.variables);
    instance.completed = completed::read(decoder, base, &mut large)?;
    instance.waits = decoder.decode::<Vec<Wait>>()?;
    if (parts as u64) < PARTS_WITHOUT_CONTROL {
        skip_to(decoder, parts, PARTS_OF_PLAIN)?;
        return Ok(instance);
    }
    completed::read_past(decoder, base, &mut instance.completed, &mut large)?;
    if (parts as u64) < PARTS_WITHOUT_ORIGIN {
        skip_to(decoder, parts, PARTS_WITHOUT_CONTROL)?;
        return Ok(instance);
    }
    instance.control = decoder.decode::<Control>()?;
    if (parts as u64) < PARTS {
        return Ok(instance);
    }
    instance.origin = Some(DefinitionKey(decoder.u64()?));
    skip_to(decoder, parts, PARTS)?;
    Ok(instance)
}

fn read_elements(
    decoder: &mut Decoder<'_>,
    base: &mut KeyBase,
) -> Result<BTreeMap<ElementInstanceKey, ElementInstance>, CorruptState> {
    let mut elements = BTreeMap::new();
    for _ in 0..length(decoder)? {
        let parts = length(decoder)?;
        let element_key: ElementInstanceKey = key::decode(decoder, base)?;
        let mut element = ElementInstance {
            element: decoder.decode()?,
            parent: key::decode(decoder, base)?,
            stage: decoder.decode::<Stage>()?,
            variables: decoder.decode::<Variables>()?,
            scope: match decoder.datatype()? {
                Type::Null => {
                    decoder.null()?;
                    None
                }
                _ => Some(Box::new(read_tokens(decoder)?)),
            },
            waits: decoder.decode::<Vec<Wait>>()?,
            incident: Some(key::decode(decoder, base)?).filter(|incident| *incident != IncidentKey(0)),
            role: decoder.decode::<Role>()?,
            handles: None,
            ad_hoc: None,
        };
        if let Role::AdHoc(begun) = element.role {
            (element.role, element.ad_hoc) = (Role::Plain, Some(begun));
        }
        if parts as u64 >= HANDLER_PARTS {
            element.handles = decoder.decode::<Option<Box<Handles>>>()?;
        }
        if parts as u64 >= AD_HOC_PARTS {
            element.ad_hoc = Some(decoder.u32()?);
        }
        if parts as u64 > HANDLER_PARTS {
            skip_to(decoder, parts, AD_HOC_PARTS)?;
        } else if parts as u64 != HANDLER_PARTS {
            skip_to(decoder, parts, ELEMENT_PARTS)?;
        }
        elements.insert(element_key, element);
    }
    Ok(elements)
}

fn read_incidents(
    decoder: &mut Decoder<'_>,
    base: &mut KeyBase,
) -> Result<BTreeMap<IncidentKey, IncidentState>, CorruptState> {
    let mut incidents = BTreeMap::new();
    for _ in 0..length(decoder)? {
        let parts = length(decoder)?;
        let incident_key: IncidentKey = key::decode(decoder, base)?;
        let element_instance: ElementInstanceKey = key::decode(decoder, base)?;
        let incident = IncidentState {
            element_instance: Some(element_instance).filter(|key| *key != ElementInstanceKey::ROOT),
            element: decoder.decode()?,
            resume: decoder.decode()?,
            code: decoder.str()?.to_owned(),
            message: decoder.str()?.to_owned(),
        };
        skip_to(decoder, parts, INCIDENT_PARTS)?;
        incidents.insert(incident_key, incident);
    }
    Ok(incidents)
}

fn read_tokens(decoder: &mut Decoder<'_>) -> Result<Scope, CorruptState> {
    let mut scope = Scope::default();
    for _ in 0..length(decoder)? / 2 {
        let flow = decoder.decode::<FlowIndex>()?;
        let count = decoder.u32()?;
        if count > 0 {
            scope.put(flow, count);
        }
    }
    Ok(scope)
}

/// Skips the parts that a later version added behind the known ones.
fn skip_to(decoder: &mut Decoder<'_>, parts: usize, known: u64) -> Result<(), CorruptState> {
    let known = usize::try_from(known).unwrap_or(usize::MAX);
    if parts < known {
        return Err(CorruptState::new("a part is missing"));
    }
    for _ in known..parts {
        decoder.skip()?;
    }
    Ok(())
}
