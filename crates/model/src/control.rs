//! What an operator does to one instance: hold it, let it go, cancel it.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::{Cause, InstanceKey, Timestamp};

/// How far a hold reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, Serialize, Deserialize)]
#[cbor(index_only)]
#[serde(rename_all = "camelCase")]
pub enum HoldScope {
    /// The instance and everything it calls, also what it calls later.
    #[default]
    #[n(0)]
    Tree,
    /// The instance alone: what it has called goes on, and the news of its end waits.
    #[n(1)]
    #[serde(rename = "self")]
    Alone,
}

impl HoldScope {
    /// The word in the API.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Alone => "self",
        }
    }
}

/// What the timers of an instance do while it is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, Serialize, Deserialize)]
#[cbor(index_only)]
#[serde(rename_all = "camelCase")]
pub enum HeldTimers {
    /// Their clock keeps running: what falls due meanwhile fires once when the instance is let go.
    #[default]
    #[n(0)]
    KeepRunning,
    /// Their clock stands still: each has as much time left afterwards as it had before.
    #[n(1)]
    StandStill,
}

impl HeldTimers {
    /// The word in the API.
    pub const fn word(self) -> &'static str {
        match self {
            Self::KeepRunning => "keepRunning",
            Self::StandStill => "standStill",
        }
    }
}

/// One hold on an instance. An instance is held as long as there is one.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// The instance that the operator suspended: this one, or one that called it.
    #[n(0)]
    #[serde(rename = "instanceKey")]
    pub origin: InstanceKey,
    /// Since when.
    #[n(1)]
    #[serde(rename = "heldSince")]
    pub since: Timestamp,
    /// Who.
    #[n(2)]
    #[serde(rename = "heldBy")]
    pub actor: String,
    /// Why, in the operator's words.
    #[n(3)]
    pub reason: Option<String>,
    /// How far it reaches.
    #[n(4)]
    pub scope: HoldScope,
    /// What timers do meanwhile.
    #[n(5)]
    pub timers: HeldTimers,
}

/// A request to cancel an instance. It stands until the instance has ended.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancellation {
    /// Since when.
    #[n(0)]
    #[serde(rename = "requestedAt")]
    pub since: Timestamp,
    /// Who.
    #[n(1)]
    #[serde(rename = "requestedBy")]
    pub actor: String,
    /// Why, in the words of who asked.
    #[n(2)]
    pub reason: Option<String>,
    /// True if the caller of the instance cancels it and does not want to hear of its end.
    #[n(3)]
    #[serde(skip)]
    pub is_unheard: bool,
    /// How long handlers that were told to stop are waited for, in milliseconds, before they are abandoned; none for the
    /// runtime's own measure. At 0 called instances are not waited for either.
    #[n(4)]
    pub patience_ms: Option<u64>,
    /// The instance that called it, where that is what cancels it.
    #[n(5)]
    #[serde(skip)]
    pub caller: Option<u64>,
}

impl Cancellation {
    /// The cause of all that comes of it.
    pub fn cause(&self) -> Cause {
        match self.caller {
            Some(instance) => Cause::Parent { instance },
            None => Cause::Operator {
                actor: self.actor.clone(),
                reason: self.reason.clone(),
            },
        }
    }
}
