//! What SQLite says, in the words of [`crate::Error`].

use std::path::Path;

use rusqlite::ffi::ErrorCode;

use crate::commit::Refusal;
use crate::error::{Error, ErrorKind};

/// Something that went wrong below the contract, before the file's name is known.
#[derive(Debug)]
pub(super) enum Trouble {
    /// SQLite or its values.
    Sql(rusqlite::Error),
    /// A stored row that cannot be what we wrote.
    Damaged(String),
    /// Ours already.
    Own(Error),
}

/// Why a commit stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// An expectation was not met; nothing was written.
    Refused(Refusal),
    /// Something went wrong, perhaps after some writes.
    Trouble(Trouble),
}

impl From<rusqlite::Error> for Trouble {
    fn from(cause: rusqlite::Error) -> Self {
        Self::Sql(cause)
    }
}

impl From<Error> for Trouble {
    fn from(cause: Error) -> Self {
        Self::Own(cause)
    }
}

impl<T: Into<Trouble>> From<T> for Stop {
    fn from(cause: T) -> Self {
        Self::Trouble(cause.into())
    }
}

impl Trouble {
    /// The error that the caller gets.
    pub fn into_error(self, path: &Path) -> Error {
        let file = path.display();
        let (kind, message) = match self {
            Self::Own(error) => return error,
            Self::Damaged(what) => (
                ErrorKind::Damaged,
                format!("`{file}` is damaged: {what}; {RESTORE}"),
            ),
            Self::Sql(cause) => explain(&cause, &file.to_string()),
        };
        Error::new(kind, message)
    }

    /// True if the failure lies in the commit itself and not in the disk or the file, so that its neighbours
    /// may well succeed.
    pub fn is_of_one_commit(&self) -> bool {
        match self {
            Self::Own(_) | Self::Damaged(_) => true,
            Self::Sql(cause) => match cause.sqlite_error_code() {
                Some(code) => matches!(
                    code,
                    ErrorCode::ConstraintViolation
                        | ErrorCode::TypeMismatch
                        | ErrorCode::TooBig
                        | ErrorCode::ParameterOutOfRange
                        | ErrorCode::OutOfMemory
                        | ErrorCode::DiskFull
                        | ErrorCode::Unknown
                ),
                None => true,
            },
        }
    }

    /// True if the failure lies in the pages of one store, so that others in the same file may well go on.
    pub fn is_of_one_store(&self) -> bool {
        matches!(self, Self::Sql(cause) if cause.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt))
    }

    /// True if a COMMIT that failed like this may have reached the disk all the same: the commit record was
    /// written, and only its sync failed. A full disk and a page limit stop it before that record.
    pub fn leaves_commit_in_doubt(&self) -> bool {
        matches!(self, Self::Sql(cause) if cause.sqlite_error_code() == Some(ErrorCode::SystemIoFailure))
    }
}

const RESTORE: &str = "stop the runtime, keep a copy of the file with its `-wal`, and restore a backup";

fn explain(cause: &rusqlite::Error, file: &str) -> (ErrorKind, String) {
    use rusqlite::Error as Sql;
    let code = match cause {
        Sql::FromSqlConversionFailure(..)
        | Sql::IntegralValueOutOfRange(..)
        | Sql::InvalidColumnType(..)
        | Sql::Utf8Error(..) => {
            return (
                ErrorKind::Damaged,
                format!("`{file}` holds a value it should not: {cause}; {RESTORE}"),
            );
        }
        other => other.sqlite_error_code(),
    };
    match code {
        Some(ErrorCode::DiskFull) => (
            ErrorKind::Full,
            format!(
                "no space left for `{file}`: {cause}; free space on its disk, the store goes on by itself"
            ),
        ),
        Some(ErrorCode::DatabaseCorrupt) => (
            ErrorKind::Damaged,
            format!("`{file}` is damaged: {cause}; {RESTORE}"),
        ),
        Some(ErrorCode::NotADatabase) => (
            ErrorKind::Damaged,
            format!("`{file}` is damaged or is no SQLite file: {cause}; check the path, or restore a backup"),
        ),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => (
            ErrorKind::ReadOnly,
            format!(
                "`{file}` cannot be written: {cause}; check the owner and mode of the file and its folder"
            ),
        ),
        Some(ErrorCode::CannotOpen) => (
            ErrorKind::ReadOnly,
            format!("`{file}` cannot be opened: {cause}; check that its folder exists and can be written"),
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => (
            ErrorKind::Locked,
            format!(
                "`{file}` is in use by another program: {cause}; close it (a backup tool, a SQLite shell)"
            ),
        ),
        Some(ErrorCode::OutOfMemory) => (
            ErrorKind::Unavailable,
            format!(
                "there is no memory left to work on `{file}`: {cause}; give the process more, or less work at once"
            ),
        ),
        Some(
            ErrorCode::SystemIoFailure | ErrorCode::OperationInterrupted | ErrorCode::NoLargeFileSupport,
        ) => (
            ErrorKind::Unavailable,
            format!("`{file}` cannot be reached: {cause}; check its disk"),
        ),
        _ => (
            ErrorKind::Internal,
            format!("`{file}` refused a statement: {cause}"),
        ),
    }
}

/// What the operating system says about a file beside the database.
pub(super) fn of_io(cause: &std::io::Error, what: &str, path: &Path) -> Error {
    use std::io::ErrorKind as Io;
    let (kind, advice) = match cause.kind() {
        Io::StorageFull | Io::QuotaExceeded => (ErrorKind::Full, "free space on its disk"),
        Io::PermissionDenied | Io::ReadOnlyFilesystem => {
            (ErrorKind::ReadOnly, "check the owner and mode of the folder")
        }
        Io::NotFound
        | Io::AlreadyExists
        | Io::NotADirectory
        | Io::IsADirectory
        | Io::InvalidFilename
        | Io::InvalidInput => (ErrorKind::Configuration, "check the path"),
        _ => (ErrorKind::Unavailable, "check its disk"),
    };
    Error::new(kind, format!("{what} `{}`: {cause}; {advice}", path.display()))
}
