//! Points in time: milliseconds since the Unix epoch, UTC.

use std::fmt;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time in milliseconds since the Unix epoch. RFC 3339 UTC in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Encode, Decode)]
#[cbor(transparent)]
pub struct Timestamp(#[n(0)] i64);

impl Timestamp {
    /// From milliseconds since the Unix epoch.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// This time plus `ms`, held at the ends of the range.
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this time; negative when it is later.
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Reads RFC 3339 (any offset).
    ///
    /// # Errors
    /// The text is not an RFC 3339 time; the message says what was expected.
    pub fn parse(text: &str) -> Result<Self, InvalidTime> {
        text.trim()
            .parse::<jiff::Timestamp>()
            .map(|t| Self(t.as_millisecond()))
            .map_err(|_| InvalidTime(text.chars().take(60).collect()))
    }
}

/// What is wrong with a text that should be a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time: expected RFC 3339, for example 2026-01-31T08:30:00Z")]
pub struct InvalidTime(pub String);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read_as_rfc3339() {
        let time = Timestamp::parse("2026-01-31T08:30:00.250+02:00").unwrap();
        assert_eq!(time.to_string(), "2026-01-31T06:30:00.250Z");
        assert_eq!(Timestamp::parse(&time.to_string()), Ok(time));
        assert!(Timestamp::parse("tomorrow").is_err());
    }
}
