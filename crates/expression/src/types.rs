//! FEEL's types, for `instance of` and for parameters.

use std::sync::Arc;

use crate::value::Value;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    Any,
    Null,
    Boolean,
    Number,
    String,
    Date,
    Time,
    DateTime,
    DaysTimeDuration,
    YearsMonthsDuration,
    List(Box<Type>),
    Context(Box<[(Arc<str>, Type)]>),
    Range(Box<Type>),
    Function(Box<[Type]>, Box<Type>),
    /// A name that FEEL does not define.
    Unknown,
}

impl Type {
    pub(crate) fn named(name: &str) -> Type {
        match name {
            "Any" => Type::Any,
            "Null" => Type::Null,
            "boolean" => Type::Boolean,
            "number" => Type::Number,
            "string" => Type::String,
            "date" => Type::Date,
            "time" => Type::Time,
            "date and time" | "dateTime" => Type::DateTime,
            "days and time duration" | "dayTimeDuration" => Type::DaysTimeDuration,
            "years and months duration" | "yearMonthDuration" => Type::YearsMonthsDuration,
            "list" => Type::List(Box::new(Type::Any)),
            "context" => Type::Context(Box::default()),
            "range" => Type::Range(Box::new(Type::Any)),
            "function" => Type::Function(Box::default(), Box::new(Type::Any)),
            _ => Type::Unknown,
        }
    }

    /// Whether a value is of this type. Nothing but `Any` and `Null` takes null.
    pub(crate) fn takes(&self, value: &Value) -> bool {
        match (self, value) {
            (Type::Any, value) => !value.is_null(),
            (Type::Null, Value::Null)
            | (Type::Boolean, Value::Boolean(_))
            | (Type::Number, Value::Number(_))
            | (Type::String, Value::String(_))
            | (Type::Date, Value::Date(_))
            | (Type::Time, Value::Time(_))
            | (Type::DateTime, Value::DateTime(_))
            | (Type::DaysTimeDuration, Value::DaysTimeDuration(_))
            | (Type::YearsMonthsDuration, Value::YearsMonthsDuration(_)) => true,
            (Type::List(item), Value::List(items)) => {
                **item == Type::Any || items.iter().all(|value| item.takes(value))
            }
            (Type::Context(entries), Value::Context(context)) => entries.iter().all(|(name, kind)| {
                context
                    .get(name)
                    .is_some_and(|value| value.is_null() || kind.takes(value))
            }),
            (Type::Range(bound), Value::Range(range)) => {
                **bound == Type::Any
                    || [&range.start, &range.end]
                        .iter()
                        .all(|value| value.is_null() || bound.takes(value))
            }
            (Type::Function(parameters, result), Value::Function(function)) => {
                function.conforms(parameters, result)
            }
            _ => false,
        }
    }

    /// A value as a parameter of this type: FEEL's conversions between one item and a list of one, and of a date to its
    /// midnight; `None` where it does not conform.
    pub(crate) fn coerce(&self, value: Value) -> Option<Value> {
        if matches!(self, Type::Any | Type::Unknown) || value.is_null() || self.takes(&value) {
            return Some(value);
        }
        match (self, &value) {
            (Type::List(item), single) if !matches!(single, Value::List(_)) && item.takes(single) => {
                Some(Value::list(vec![value]))
            }
            (Type::DateTime, Value::Date(date)) => Some(Value::date_time(
                date.at_midnight(Some(crate::temporal::Zone::UTC)),
            )),
            (kind, Value::List(items)) => match &***items {
                [single] if kind.takes(single) => Some(single.clone()),
                _ => None,
            },
            _ => None,
        }
    }
}
