//! Variables: names with untouched JSON text.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use minicbor::decode::{Decoder, Error as DecodeError};
use minicbor::encode::{Encoder, Error as EncodeError, Write};
use minicbor::{Decode, Encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// One JSON value, kept as the text it came as. Cheap to clone; parsed only where something reads it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Arc<str>);

impl Json {
    /// Checks that `text` is one JSON value and keeps it.
    ///
    /// # Errors
    /// The text is not one complete JSON value.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let raw: &RawValue = serde_json::from_str(text)?;
        Ok(Self(Arc::from(raw.get())))
    }

    /// Keeps `text` without a check: for text that was checked or made by a serializer before.
    pub fn trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The JSON text of any serializable value; `null` if it cannot be written as JSON.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Self {
        Self(
            serde_json::to_string(value)
                .unwrap_or_else(|_| "null".to_owned())
                .into(),
        )
    }

    /// The JSON text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The parsed value.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).unwrap_or(serde_json::Value::Null)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<C> Encode<C> for Json {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, _: &mut C) -> Result<(), EncodeError<W::Error>> {
        e.str(&self.0)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Json {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
        d.str().map(|text| Self(Arc::from(text)))
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(Arc::from(raw.get())))
    }
}

/// Names with values, in the order of the names. A JSON object in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Variables(pub BTreeMap<Arc<str>, Json>);

impl Variables {
    /// None at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a JSON object.
    ///
    /// # Errors
    /// The text is not a JSON object.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.0.get(name)
    }

    /// Sets one value.
    pub fn set(&mut self, name: impl Into<Arc<str>>, value: Json) {
        self.0.insert(name.into(), value);
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Json)> {
        self.0.iter()
    }

    /// Takes over every value of `other`.
    pub fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The JSON object as text.
    pub fn to_json(&self) -> String {
        let mut text = String::with_capacity(
            2 + self
                .0
                .iter()
                .map(|(n, v)| n.len() + v.text().len() + 4)
                .sum::<usize>(),
        );
        text.push('{');
        for (position, (name, value)) in self.0.iter().enumerate() {
            if position > 0 {
                text.push(',');
            }
            text.push_str(&serde_json::to_string(&**name).unwrap_or_default());
            text.push(':');
            text.push_str(value.text());
        }
        text.push('}');
        text
    }
}

impl<N: Into<Arc<str>>> FromIterator<(N, Json)> for Variables {
    fn from_iter<I: IntoIterator<Item = (N, Json)>>(iter: I) -> Self {
        Self(
            iter.into_iter()
                .map(|(name, value)| (name.into(), value))
                .collect(),
        )
    }
}

impl IntoIterator for Variables {
    type Item = (Arc<str>, Json);
    type IntoIter = std::collections::btree_map::IntoIter<Arc<str>, Json>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<C> Encode<C> for Variables {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, ctx: &mut C) -> Result<(), EncodeError<W::Error>> {
        e.map(self.0.len() as u64)?;
        for (name, value) in &self.0 {
            e.str(name)?;
            value.encode(e, ctx)?;
        }
        Ok(())
    }
}

impl<'b, C> Decode<'b, C> for Variables {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Self, DecodeError> {
        let count = d
            .map()?
            .ok_or_else(|| DecodeError::message("variables of unknown count"))?;
        let mut values = BTreeMap::new();
        for _ in 0..count {
            values.insert(Arc::from(d.str()?), Json::decode(d, ctx)?);
        }
        Ok(Self(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_text() {
        let variables = Variables::parse(r#"{"b": 1.10, "a": {"x":  [1, 2]}}"#).unwrap();
        assert_eq!(variables.get("b").unwrap().text(), "1.10");
        assert_eq!(variables.to_json(), r#"{"a":{"x":  [1, 2]},"b":1.10}"#);
        let bytes = minicbor::to_vec(&variables).unwrap();
        assert_eq!(minicbor::decode::<Variables>(&bytes).unwrap(), variables);
        assert!(Variables::parse("[1]").is_err());
        assert!(Json::parse("1 2").is_err());
    }
}
