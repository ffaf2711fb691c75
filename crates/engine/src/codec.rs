//! Bytes of events and of instances: a version byte, the base key, then CBOR with numeric tags.
//!
//! Keys of one instance lie close together, so they are written as differences to a base.

use minicbor::decode::Decoder;
use minicbor::encode::Encoder;
use tidegate_model::{ElementInstanceKey, IncidentKey, InstanceKey, MessageKey};

use crate::event::Event;

/// The version of the layout, the first byte of everything written here.
pub(crate) const VERSION: u8 = 1;

/// Bytes that are not a state or a list of events: damaged, or written by a later version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorruptState {
    /// What does not fit.
    pub message: String,
}

impl CorruptState {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

impl std::fmt::Display for CorruptState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the stored state cannot be read: {}", self.message)
    }
}

impl std::error::Error for CorruptState {}

impl From<minicbor::decode::Error> for CorruptState {
    fn from(error: minicbor::decode::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// Writes the events of one commit.
pub fn encode_events(events: &[Event]) -> Vec<u8> {
    let mut base = KeyBase(events.iter().find_map(first_key).unwrap_or_default());
    let mut bytes = Vec::with_capacity(16 + events.len() * 12);
    bytes.push(VERSION);
    let mut encoder = Encoder::new(&mut bytes);
    let Ok(()) = write_events(&mut encoder, events, &mut base);
    bytes
}

fn write_events(
    encoder: &mut Encoder<&mut Vec<u8>>,
    events: &[Event],
    base: &mut KeyBase,
) -> Result<(), std::convert::Infallible> {
    // Writing into a vector has no error of its own, and no type here refuses to be written.
    let written = encoder
        .u64(base.0)
        .and_then(|e| e.array(events.len() as u64))
        .and_then(|e| {
            events
                .iter()
                .try_for_each(|event| e.encode_with(event, base).map(|_| ()))
        });
    debug_assert!(written.is_ok());
    Ok(())
}

/// Reads the events of one commit.
///
/// # Errors
/// The bytes are damaged or of a later version.
pub fn decode_events(bytes: &[u8]) -> Result<Vec<Event>, CorruptState> {
    let mut decoder = open(bytes)?;
    let mut base = KeyBase(decoder.u64()?);
    let count = length(&mut decoder)?;
    // The count may be damaged: it reserves no more than a usual commit needs.
    const USUAL: usize = 256;
    let mut events = Vec::with_capacity(count.min(USUAL));
    for _ in 0..count {
        events.push(decoder.decode_with(&mut base)?);
    }
    finished(&decoder, bytes)?;
    Ok(events)
}

/// A decoder behind the version byte.
pub(crate) fn open(bytes: &[u8]) -> Result<Decoder<'_>, CorruptState> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => Ok(Decoder::new(rest)),
        Some((version, _)) => Err(CorruptState::new(format!("version {version} is not known here"))),
        None => Err(CorruptState::new("there are no bytes")),
    }
}

/// The length of an array of known length.
pub(crate) fn length(decoder: &mut Decoder<'_>) -> Result<usize, CorruptState> {
    let length = decoder
        .array()?
        .ok_or_else(|| CorruptState::new("a list of unknown length"))?;
    usize::try_from(length).map_err(|_| CorruptState::new("a list is too long"))
}

/// Refuses bytes behind the end.
pub(crate) fn finished(decoder: &Decoder<'_>, bytes: &[u8]) -> Result<(), CorruptState> {
    match decoder.position() + 1 == bytes.len() {
        true => Ok(()),
        false => Err(CorruptState::new("there are bytes behind the end")),
    }
}

/// The key that others are written as differences to.
pub(crate) struct KeyBase(pub(crate) u64);

/// A coding context that has a base key.
pub(crate) trait Base {
    fn base(&self) -> u64;
}

impl Base for KeyBase {
    fn base(&self) -> u64 {
        self.0
    }
}

/// A key that may be written as a difference.
pub(crate) trait Key: Copy {
    fn raw(self) -> u64;
    fn of(raw: u64) -> Self;
}

macro_rules! keys {
    ($($name:ident),*) => {$(
        impl Key for $name {
            fn raw(self) -> u64 {
                self.0
            }
            fn of(raw: u64) -> Self {
                Self(raw)
            }
        }
    )*};
}
keys!(ElementInstanceKey, IncidentKey, InstanceKey, MessageKey);

/// How keys are written: 0 stays 0, every other key is its zigzag difference plus 1.
pub(crate) mod key {
    use minicbor::decode::{Decoder, Error as DecodeError};
    use minicbor::encode::{Encoder, Error as EncodeError, Write};

    use super::{Base, Key};

    pub(crate) fn encode<K: Key, C: Base, W: Write>(
        key: &K,
        encoder: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        encoder.u64(pack(key.raw(), context.base()))?.ok()
    }

    pub(crate) fn decode<'b, K: Key, C: Base>(
        decoder: &mut Decoder<'b>,
        context: &mut C,
    ) -> Result<K, DecodeError> {
        let position = decoder.position();
        match unpack(decoder.u64()?, context.base()) {
            key if key <= i64::MAX as u64 => Ok(K::of(key)),
            _ => Err(DecodeError::message("a key beyond 63 bits").at(position)),
        }
    }

    fn pack(key: u64, base: u64) -> u64 {
        let difference = key.wrapping_sub(base).cast_signed();
        let zigzag = ((difference << 1) ^ (difference >> 63)).cast_unsigned();
        if key == 0 { 0 } else { zigzag.wrapping_add(1) }
    }

    fn unpack(packed: u64, base: u64) -> u64 {
        let zigzag = packed.wrapping_sub(1);
        let difference = (zigzag >> 1).cast_signed() ^ -((zigzag & 1).cast_signed());
        if packed == 0 {
            0
        } else {
            base.wrapping_add(difference.cast_unsigned())
        }
    }

    #[cfg(test)]
    mod tests {
        use super::{pack, unpack};

        #[test]
        fn keys_near_and_far_survive() {
            let edges = [0, 1, 2, 4095, 4096, 1 << 40, i64::MAX as u64 - 1, i64::MAX as u64];
            for base in edges {
                for key in edges {
                    assert_eq!(unpack(pack(key, base), base), key, "{key} against {base}");
                }
            }
            assert!(pack(1_000_005, 1_000_000) < 24, "a near key is one byte");
        }
    }
}

fn first_key(event: &Event) -> Option<u64> {
    let key = match event {
        Event::ElementActivated { key, .. }
        | Event::ElementCompleted { key, .. }
        | Event::ElementTerminated { key, .. }
        | Event::ResultsMerged { key, .. }
        | Event::JobCreated { key, .. }
        | Event::JobCompleted { key, .. }
        | Event::JobFailed { key, .. }
        | Event::JobRetried { key, .. }
        | Event::ActivityInterrupted { key, .. }
        | Event::ScriptEvaluated { key, .. }
        | Event::UserTaskCreated { key, .. }
        | Event::UserTaskAssigned { key, .. }
        | Event::UserTaskCompleted { key, .. }
        | Event::ErrorThrown { key, .. }
        | Event::ErrorCaught { key, .. }
        | Event::MessagePublished { key, .. }
        | Event::SignalThrown { key, .. }
        | Event::EscalationThrown { key, .. }
        | Event::EscalationCaught { key, .. }
        | Event::EscalationUncaught { key, .. }
        | Event::GatewayOpened { key, .. }
        | Event::GatewayReset { key, .. }
        | Event::LoopStarted { key, .. }
        | Event::LoopTurnActivated { key, .. }
        | Event::LoopOutputCollected { key, .. }
        | Event::LoopEnded { key, .. }
        | Event::ChildCalled { key, .. }
        | Event::ChildEnded { key, .. }
        | Event::ChildCancelRequested { key, .. }
        | Event::ActivityAbandoned { key, .. }
        | Event::CompensationActivated { key, .. }
        | Event::TransactionCancelled { key, .. }
        | Event::AdHocProgressed { key, .. }
        | Event::CompensationKept { key, .. }
        | Event::CompensationDetached { key, .. }
        | Event::ScopeEntered { key, .. }
        | Event::AdHocClosed { key, .. } => key.0,
        Event::TimerArmed { owner, .. }
        | Event::TimerFired { owner, .. }
        | Event::MessageSubscribed { owner, .. }
        | Event::MessageCorrelated { owner, .. }
        | Event::SignalSubscribed { owner, .. }
        | Event::SignalCaught { owner, .. }
        | Event::ConditionAwaited { owner, .. }
        | Event::ConditionMet { owner, .. }
        | Event::ConditionLapsed { owner, .. }
        | Event::WaitsClosed { owner, .. } => owner.0,
        Event::SequenceFlowTaken { scope, .. }
        | Event::TokensRemoved { scope }
        | Event::TokensTaken { scope, .. }
        | Event::VariablesSet { scope, .. }
        | Event::CompensationEnded { scope, .. } => scope.0,
        Event::IncidentRaised { incident, .. } | Event::IncidentResolved { incident } => incident.0,
        Event::Caused { .. }
        | Event::InstanceStarted { .. }
        | Event::InstanceCompleted
        | Event::InstanceCancelled
        | Event::InstanceFaulted { .. }
        | Event::WorkflowInterrupted { .. }
        | Event::CrashRecovered { .. }
        | Event::HistoryTrimmed { .. }
        | Event::Migrated { .. }
        | Event::InstanceHeld { .. }
        | Event::InstanceReleased { .. }
        | Event::CancelRequested { .. } => 0,
    };
    (key != 0).then_some(key)
}
