//! What forgetting leaves behind, and what retention asks for.

use tidegate_model::{DefinitionKey, InstanceKey, SubStatus, Timestamp};

/// An instance that was forgotten. As long as this row is there, nothing of its key can be written again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgottenRow {
    /// Its key.
    pub instance: InstanceKey,
    /// Its definition.
    pub definition: DefinitionKey,
    /// How it had ended.
    pub sub_status: SubStatus,
    /// When it was forgotten.
    pub forgotten_at: Timestamp,
    /// When this row goes; none while the journal is kept.
    pub expires_at: Option<Timestamp>,
    /// What became of its journal.
    pub journal: ForgottenJournal,
}

/// What became of the journal of a forgotten instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgottenJournal {
    /// It is gone.
    Gone,
    /// It is being removed, in slices.
    Going,
    /// It is kept, and goes when the instance is forgotten without keeping it.
    Kept,
}

impl ForgottenJournal {
    /// Its number in a file.
    pub const fn code(self) -> u8 {
        match self {
            Self::Gone => 0,
            Self::Going => 1,
            Self::Kept => 2,
        }
    }

    /// The one of this number.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Gone),
            1 => Some(Self::Going),
            2 => Some(Self::Kept),
            _ => None,
        }
    }
}

/// Which instances to forget, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgetRequest {
    /// The instances.
    pub instances: Vec<InstanceKey>,
    /// The present time.
    pub now: Timestamp,
    /// Until when their keys stay fenced.
    pub fenced_until: Timestamp,
    /// True if their journals stay readable.
    pub keeps_journal: bool,
    /// How many journal rows this commit removes at most; the rest goes with [`crate::Write::SweepForgotten`].
    pub limit: usize,
}

/// Why an instance cannot be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unforgettable {
    /// There is none of this key.
    Unknown,
    /// It has not ended.
    Live,
    /// It called this instance, which would be left behind.
    Called(InstanceKey),
}

/// A finished instance, as retention sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedRow {
    /// Its key.
    pub key: InstanceKey,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Its revision: it has at most so many journal rows.
    pub revision: u64,
}

/// An operation on many instances. What it does is the caller's: the store keeps its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRow {
    /// Its key.
    pub key: u64,
    /// When it was over.
    pub ended_at: Option<Timestamp>,
    /// What it is and how far it got: JSON.
    pub body: String,
}

/// What became of one instance in an operation on many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationItemRow {
    /// The operation.
    pub operation: u64,
    /// The instance.
    pub instance: InstanceKey,
    /// What became of it.
    pub outcome: String,
    /// Why, in words.
    pub detail: Option<String>,
}

impl crate::InstanceFilter {
    /// Every instance that has not ended, held ones included.
    pub fn running() -> Self {
        Self::with(|sub_status| !sub_status.is_finished())
    }

    /// Every instance that has ended: finished, faulted or cancelled.
    pub fn completed() -> Self {
        Self::with(SubStatus::is_finished)
    }

    fn with(is_meant: impl Fn(SubStatus) -> bool) -> Self {
        Self {
            sub_statuses: SubStatus::ALL.into_iter().filter(|one| is_meant(*one)).collect(),
            ..Self::default()
        }
    }
}
