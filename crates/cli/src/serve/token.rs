//! The operator's token: given, kept, or made.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The name of the token's file in the data directory.
const FILE: &str = "token";
/// Only the owner may read it.
const MODE: u32 = 0o600;
/// A shorter one can be guessed.
const LEAST_LENGTH: usize = 16;

/// A token and where it comes from.
#[derive(Debug, PartialEq, Eq)]
pub enum Token {
    /// From the environment or a file that the operator named.
    Given(String),
    /// Kept by an earlier start.
    Kept(String, PathBuf),
    /// Made now; kept in the file, if there is a directory for it.
    Made(String, Option<PathBuf>),
}

impl Token {
    /// The token itself.
    pub fn text(&self) -> &str {
        match self {
            Self::Given(text) | Self::Kept(text, _) | Self::Made(text, _) => text,
        }
    }
}

/// The token that the operator gave, if any.
///
/// # Errors
/// The key of the setting and what is wrong.
pub fn given(environment: Option<String>, file: Option<&Path>) -> Result<Option<Token>, (String, String)> {
    let refuse = |key: &str, message: String| Err((key.to_owned(), message));
    let (key, text) = match (environment, file) {
        (Some(text), _) => ("token", text),
        (None, Some(file)) => match fs::read_to_string(file) {
            Ok(text) => ("token-file", text),
            Err(error) => {
                return refuse(
                    "token-file",
                    format!("`{}` cannot be read: {error}", file.display()),
                );
            }
        },
        (None, None) => return Ok(None),
    };
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return refuse(key, "must be a text of visible ASCII characters".to_owned());
    }
    if text.len() < LEAST_LENGTH {
        tracing::warn!("the token is shorter than {LEAST_LENGTH} characters and can be guessed");
    }
    Ok(Some(Token::Given(text.to_owned())))
}

/// The kept token of a data directory, or a new one.
///
/// # Errors
/// The file cannot be read or written.
pub fn kept_or_made(data: Option<&Path>) -> Result<Token, String> {
    let Some(path) = data.map(|data| data.join(FILE)) else {
        return Ok(Token::Made(random(), None));
    };
    let failed = |what: &str, error: std::io::Error| {
        format!("the token file `{}` cannot be {what}: {error}", path.display())
    };
    match fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => {
            warn_if_open(&path);
            return Ok(Token::Kept(text.trim().to_owned(), path));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed("read", error)),
    }
    let token = random();
    let file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(MODE)
        .open(&path);
    file.and_then(|mut file| writeln!(file, "{token}").and_then(|()| file.sync_all()))
        .map_err(|error| failed("written", error))?;
    Ok(Token::Made(token, Some(path)))
}

fn warn_if_open(path: &Path) {
    if fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0) {
        tracing::warn!(file = %path.display(), "other users can read the token; set its mode to 0600");
    }
}

/// 244 random bits of the operating system.
fn random() -> String {
    format!(
        "{}{}",
        uuid::Uuid::new_v4().simple(),
        uuid::Uuid::new_v4().simple()
    )
}
