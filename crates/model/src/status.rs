//! The status model: one word and one sub-word, and the life-cycle word they map to.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// Whether an instance is under way or has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Not ended.
    Running,
    /// Ended, in one of three ways.
    Finished,
}

/// What exactly an instance is doing.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Encode, Decode, Serialize, Deserialize,
)]
#[cbor(index_only)]
#[serde(rename_all = "lowercase")]
pub enum SubStatus {
    /// Accepted, no cycle yet.
    #[n(0)]
    Pending,
    /// A cycle runs.
    #[n(1)]
    Executing,
    /// At rest, waits for something.
    #[n(2)]
    Suspended,
    /// The last cycle was cut by the runtime; resumes by itself.
    #[n(3)]
    Interrupted,
    /// Held by an operator.
    #[n(4)]
    Held,
    /// Cancel was asked for, work is being stopped.
    #[n(5)]
    Cancelling,
    /// Reached its end.
    #[n(6)]
    Finished,
    /// Cancelled by an operator, a parent or the library.
    #[n(7)]
    Cancelled,
    /// Ended by an unhandled error.
    #[n(8)]
    Faulted,
}

/// The life-cycle word of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LifecycleState {
    /// Accepted, no cycle yet.
    Created,
    /// Under way.
    Active,
    /// Held by an operator.
    Suspended,
    /// Being cancelled.
    Terminating,
    /// Reached its end.
    Completed,
    /// Cancelled.
    Terminated,
    /// Ended by an unhandled error.
    Failed,
}

impl SubStatus {
    /// Every sub-status, in the order of the status table.
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::Executing,
        Self::Suspended,
        Self::Interrupted,
        Self::Held,
        Self::Cancelling,
        Self::Finished,
        Self::Cancelled,
        Self::Faulted,
    ];

    /// The status it belongs to.
    pub const fn status(self) -> Status {
        match self {
            Self::Finished | Self::Cancelled | Self::Faulted => Status::Finished,
            Self::Pending
            | Self::Executing
            | Self::Suspended
            | Self::Interrupted
            | Self::Held
            | Self::Cancelling => Status::Running,
        }
    }

    /// True once the instance has ended.
    pub const fn is_finished(self) -> bool {
        matches!(self.status(), Status::Finished)
    }

    /// The life-cycle word.
    pub const fn lifecycle(self) -> LifecycleState {
        match self {
            Self::Pending => LifecycleState::Created,
            Self::Executing | Self::Suspended | Self::Interrupted => LifecycleState::Active,
            Self::Held => LifecycleState::Suspended,
            Self::Cancelling => LifecycleState::Terminating,
            Self::Finished => LifecycleState::Completed,
            Self::Cancelled => LifecycleState::Terminated,
            Self::Faulted => LifecycleState::Failed,
        }
    }

    /// The number it is stored as.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The sub-status of a stored number.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The word used in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Executing => "executing",
            Self::Suspended => "suspended",
            Self::Interrupted => "interrupted",
            Self::Held => "held",
            Self::Cancelling => "cancelling",
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
            Self::Faulted => "faulted",
        }
    }

    /// The sub-status of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_words_go_both_ways() {
        for sub_status in SubStatus::ALL {
            assert_eq!(SubStatus::from_code(sub_status.code()), Some(sub_status));
            assert_eq!(SubStatus::from_word(sub_status.word()), Some(sub_status));
            assert_eq!(
                serde_json::to_string(&sub_status).unwrap(),
                format!("\"{}\"", sub_status.word())
            );
        }
    }
}
