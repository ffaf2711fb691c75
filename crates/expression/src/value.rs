//! The values of expressions. Big ones are shared: a clone copies a pointer.

use std::fmt::{self, Debug, Formatter};
use std::ops::Deref;
use std::sync::Arc;

use crate::context::Context;
use crate::decimal::Decimal;
use crate::evaluate::Function;
use crate::json::{self, JsonError};
use crate::temporal::{Date, DateTime, DaysTimeDuration, Time, YearsMonthsDuration};

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// Nothing, and in FEEL also the result of what has none.
    Null,
    /// True or false.
    Boolean(bool),
    /// A decimal number.
    Number(Decimal),
    /// A text.
    String(Arc<str>),
    /// A list.
    List(Arc<List>),
    /// Named entries in the order in which they were written.
    Context(Arc<Context>),
    /// A date.
    Date(Date),
    /// A time of day.
    Time(Arc<Time>),
    /// A date and time.
    DateTime(Arc<DateTime>),
    /// A duration of days and smaller units.
    DaysTimeDuration(DaysTimeDuration),
    /// A duration of years and months.
    YearsMonthsDuration(YearsMonthsDuration),
    /// A range of comparable values.
    Range(Arc<Range>),
    /// A function.
    Function(Arc<Function>),
}

/// The items of a list value, and how deep they nest.
#[derive(Debug, Default)]
pub struct List {
    items: Vec<Value>,
    depth: u32,
}

impl Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.items
    }
}

/// A range: `[1..10]`, `(1..10)`, `(< 10)`. A bound that is `Null` is open to that side.
#[derive(Clone, Debug)]
pub struct Range {
    /// Lower bound.
    pub start: Value,
    /// Upper bound.
    pub end: Value,
    /// Whether the lower bound belongs to the range.
    pub start_included: bool,
    /// Whether the upper bound belongs to the range.
    pub end_included: bool,
    /// Whether this is the complement of a single value, as `(!= 10)` writes it.
    pub excluded: bool,
}

impl Value {
    /// A text value.
    pub fn string(text: impl Into<Arc<str>>) -> Value {
        Value::String(text.into())
    }

    /// A list value.
    pub fn list(items: Vec<Value>) -> Value {
        let depth = items.iter().map(Value::depth).max().unwrap_or(0) + 1;
        Value::List(Arc::new(List { items, depth }))
    }

    /// A context value; of entries with the same name, the last counts.
    pub fn context<N: Into<Arc<str>>>(entries: impl IntoIterator<Item = (N, Value)>) -> Value {
        Value::Context(Arc::new(
            entries
                .into_iter()
                .map(|(name, value)| (name.into(), value))
                .collect(),
        ))
    }

    /// A time value.
    pub fn time(time: Time) -> Value {
        Value::Time(Arc::new(time))
    }

    /// A date and time value.
    pub fn date_time(date_time: DateTime) -> Value {
        Value::DateTime(Arc::new(date_time))
    }

    /// Reads JSON. Numbers keep all their digits up to 34; of members with the same name, the last counts.
    ///
    /// # Errors
    ///
    /// Text that is not JSON, nests deeper than 120 levels, or holds a number beyond the range of decimals.
    pub fn from_json(text: &str) -> Result<Value, JsonError> {
        json::read(text)
    }

    /// Reads a date, time, date and time or duration in the ISO form that FEEL writes, such as `2026-01-31`, `PT5M`
    /// or `2026-01-31T10:00:00@Europe/Paris`; `None` for any other text.
    pub fn from_temporal(text: &str) -> Option<Value> {
        crate::temporal::parse_at(text)
    }

    /// Writes JSON. Temporal values become ISO strings, numbers keep their decimal text; ranges and functions, which
    /// JSON does not know, become strings too.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        json::write(self, &mut out);
        out
    }

    /// The boolean, if it is one.
    pub fn as_boolean(&self) -> Option<bool> {
        if let Value::Boolean(value) = self {
            Some(*value)
        } else {
            None
        }
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<&Decimal> {
        if let Value::Number(value) = self {
            Some(value)
        } else {
            None
        }
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(value) = self {
            Some(value)
        } else {
            None
        }
    }

    /// The items, if it is a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        if let Value::List(value) = self {
            Some(value)
        } else {
            None
        }
    }

    /// The context, if it is one.
    pub fn as_context(&self) -> Option<&Context> {
        if let Value::Context(value) = self {
            Some(value)
        } else {
            None
        }
    }

    /// Whether it is `Null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The kind of value in FEEL's words, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Boolean(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::List(_) => "list",
            Value::Context(_) => "context",
            Value::Date(_) => "date",
            Value::Time(_) => "time",
            Value::DateTime(_) => "date and time",
            Value::DaysTimeDuration(_) => "days and time duration",
            Value::YearsMonthsDuration(_) => "years and months duration",
            Value::Range(_) => "range",
            Value::Function(_) => "function",
        }
    }

    /// How deep lists, contexts and closures nest in it.
    pub(crate) fn depth(&self) -> u32 {
        match self {
            Value::List(list) => list.depth,
            Value::Context(context) => context.depth(),
            Value::Range(range) => range.start.depth().max(range.end.depth()) + 1,
            Value::Function(function) => function.depth(),
            _ => 0,
        }
    }
}

impl PartialEq for Value {
    /// Equality as FEEL has it, with values that cannot be compared being different. Functions are never equal.
    fn eq(&self, other: &Self) -> bool {
        crate::compare::equal(self, other) == Some(true)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Boolean(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Number(value.into())
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Value::Number(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::string(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::string(value)
    }
}

impl From<Decimal> for Value {
    fn from(value: Decimal) -> Self {
        Value::Number(value)
    }
}

impl From<Option<Decimal>> for Value {
    fn from(value: Option<Decimal>) -> Self {
        value.map_or(Value::Null, Value::Number)
    }
}

impl From<Option<bool>> for Value {
    fn from(value: Option<bool>) -> Self {
        value.map_or(Value::Null, Value::Boolean)
    }
}

impl fmt::Display for Value {
    /// As the FEEL function `string` writes it, except that a top-level text has quotes too.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Boolean(value) => write!(f, "{value}"),
            Value::Number(value) => write!(f, "{value}"),
            Value::String(value) => write!(f, "\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
            Value::List(list) => {
                f.write_str("[")?;
                for (index, item) in list.iter().enumerate() {
                    write!(f, "{}{item}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Value::Context(context) => write!(f, "{context}"),
            Value::Date(value) => write!(f, "{value}"),
            Value::Time(value) => write!(f, "{value}"),
            Value::DateTime(value) => write!(f, "{value}"),
            Value::DaysTimeDuration(value) => write!(f, "{value}"),
            Value::YearsMonthsDuration(value) => write!(f, "{value}"),
            Value::Range(range) => write!(f, "{range}"),
            Value::Function(_) => f.write_str("function"),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.excluded {
            return write!(f, "(!={})", self.start);
        }
        let (open, close) = (
            if self.start_included { '[' } else { '(' },
            if self.end_included { ']' } else { ')' },
        );
        write!(f, "{open}{}..{}{close}", self.start, self.end)
    }
}
