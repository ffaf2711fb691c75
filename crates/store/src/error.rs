//! What can go wrong with a store, and whether trying again can help.

use std::fmt;

/// What went wrong, as a kind that code can match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The URL or an option is wrong.
    Configuration,
    /// Another process holds the store.
    Locked,
    /// The file is damaged or is no store.
    Damaged,
    /// The disk is full.
    Full,
    /// The file or its folder cannot be written.
    ReadOnly,
    /// The store was written by a newer version.
    NewerSchema,
    /// A later generation has taken hold of the store.
    Fenced,
    /// The store cannot be reached now.
    Unavailable,
    /// The store was closed by us.
    Closed,
    /// A bug of ours: a statement or a value that the store refuses.
    Internal,
}

impl ErrorKind {
    /// True if the same call may succeed later without anybody changing the configuration.
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::Full | Self::Unavailable | Self::Locked | Self::ReadOnly => true,
            Self::Configuration
            | Self::Damaged
            | Self::NewerSchema
            | Self::Fenced
            | Self::Closed
            | Self::Internal => false,
        }
    }

    /// Stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Configuration => "store-configuration",
            Self::Locked => "store-locked",
            Self::Damaged => "store-damaged",
            Self::Full => "store-full",
            Self::ReadOnly => "store-read-only",
            Self::NewerSchema => "store-newer-schema",
            Self::Fenced => "store-fenced",
            Self::Unavailable => "store-unavailable",
            Self::Closed => "store-closed",
            Self::Internal => "store-internal",
        }
    }
}

/// An error of a store: kind, what happened, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    /// An error with its message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
