//! Names for stores that share one place.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind};

/// Names up to this length, so that each can also be the name of a schema.
const MAX: usize = 63;
/// What database programs keep for themselves.
const RESERVED: [&str; 2] = ["sqlite_", "pg_"];

/// Which of the stores in one place is meant. What a place holds that never heard of namespaces is in the one named
/// `default`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace(Box<str>);

impl Namespace {
    /// The name of the namespace that is meant where none is named.
    pub const DEFAULT: &'static str = "default";

    /// Its name, in lower case: names are matched without regard to case.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True for the one that is meant where none is named.
    pub fn is_default(&self) -> bool {
        &*self.0 == Self::DEFAULT
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self(Self::DEFAULT.into())
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Namespace {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |why: String| Error::new(ErrorKind::Configuration, format!("`{text}` {why}"));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let begins_well = text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric());
        if !begins_well || text.len() > MAX || !text.bytes().all(is_plain) {
            return Err(refuse(format!(
                "is no namespace: use up to {MAX} letters, digits, `-` and `_`, a letter or digit first"
            )));
        }
        let name = text.to_ascii_lowercase();
        if let Some(prefix) = RESERVED.iter().find(|prefix| name.starts_with(**prefix)) {
            return Err(refuse(format!(
                "is no namespace: names that begin with `{prefix}` belong to the database"
            )));
        }
        Ok(Self(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_short_and_without_case() {
        let billing: Namespace = "Billing-2_eu".parse().unwrap();
        assert_eq!(billing.as_str(), "billing-2_eu");
        assert_eq!(billing, "BILLING-2_EU".parse().unwrap());
        assert!("Default".parse::<Namespace>().unwrap().is_default());
        assert!("x".repeat(63).parse::<Namespace>().is_ok());
        for bad in [
            "",
            "-a",
            "_a",
            "a b",
            "a.b",
            "a\"b",
            "a$b",
            "ä",
            "a\0",
            &"x".repeat(64),
        ] {
            let error = bad.parse::<Namespace>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(error.to_string().contains("is no namespace"), "{error}");
        }
        for taken in ["sqlite_x", "PG_catalog"] {
            assert!(
                taken
                    .parse::<Namespace>()
                    .unwrap_err()
                    .to_string()
                    .contains("belong")
            );
        }
    }
}
