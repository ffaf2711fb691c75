//! Types: FEEL's own and those that a model defines. A value that is not of its type becomes null.

use std::sync::Arc;

use tidegate_expression::{EvaluationError, Meter, NoScope, UnaryTests, Value, Zone};

use crate::limits::{MAX_TYPE_CHAIN, MAX_WRITTEN};

/// A resolved type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Any,
    Boolean,
    Number,
    String,
    Date,
    Time,
    DateTime,
    DaysTimeDuration,
    YearsMonthsDuration,
    List,
    Context,
    Range,
    Function,
    /// A type that a model defines, by its number.
    Item(usize),
}

impl Type {
    /// A type of FEEL by its name, in the spellings of all editions.
    pub(crate) fn named(name: &str) -> Option<Type> {
        Some(match name {
            "Any" | "any" => Type::Any,
            "boolean" => Type::Boolean,
            // The longer names are those of the Java engines.
            "number" | "integer" | "long" | "double" => Type::Number,
            "string" => Type::String,
            "date" => Type::Date,
            "time" => Type::Time,
            "date and time" | "dateTime" => Type::DateTime,
            "days and time duration" | "dayTimeDuration" => Type::DaysTimeDuration,
            "years and months duration" | "yearMonthDuration" => Type::YearsMonthsDuration,
            "list" => Type::List,
            "context" => Type::Context,
            "range" => Type::Range,
            "function" => Type::Function,
            _ => return None,
        })
    }
}

/// A type that a model defines.
#[derive(Debug)]
pub(crate) struct Item {
    pub name: Arc<str>,
    /// The type of the value, or of each item of a collection.
    pub base: Type,
    pub collection: bool,
    pub components: Vec<(Arc<str>, Type)>,
    /// Parameters and result, of a type of functions.
    pub function: Option<(Vec<Type>, Type)>,
    /// Tests of the value, or of each item of a collection.
    pub allowed: Option<UnaryTests>,
    /// Tests of the collection as a whole.
    pub constraint: Option<UnaryTests>,
}

type Outcome<T> = Result<T, EvaluationError>;

/// The types that the models define.
#[derive(Debug, Default)]
pub(crate) struct Types {
    pub items: Vec<Item>,
}

impl Types {
    pub(crate) fn name(&self, kind: Type) -> String {
        match kind {
            Type::Any => "Any".to_owned(),
            Type::Boolean => "boolean".to_owned(),
            Type::Number => "number".to_owned(),
            Type::String => "string".to_owned(),
            Type::Date => "date".to_owned(),
            Type::Time => "time".to_owned(),
            Type::DateTime => "date and time".to_owned(),
            Type::DaysTimeDuration => "days and time duration".to_owned(),
            Type::YearsMonthsDuration => "years and months duration".to_owned(),
            Type::List => "list".to_owned(),
            Type::Context => "context".to_owned(),
            Type::Range => "range".to_owned(),
            Type::Function => "function".to_owned(),
            Type::Item(item) => self
                .items
                .get(item)
                .map_or_else(String::new, |item| item.name.to_string()),
        }
    }

    /// Whether a value is of a type as it stands. Null is of every type.
    pub(crate) fn takes(&self, kind: Type, value: &Value, meter: &mut Meter) -> Outcome<bool> {
        Ok(match (kind, value) {
            (_, Value::Null)
            | (Type::Any, _)
            | (Type::Boolean, Value::Boolean(_))
            | (Type::Number, Value::Number(_))
            | (Type::String, Value::String(_))
            | (Type::Date, Value::Date(_))
            | (Type::Time, Value::Time(_))
            | (Type::DateTime, Value::DateTime(_))
            | (Type::DaysTimeDuration, Value::DaysTimeDuration(_))
            | (Type::YearsMonthsDuration, Value::YearsMonthsDuration(_))
            | (Type::List, Value::List(_))
            | (Type::Context, Value::Context(_))
            | (Type::Range, Value::Range(_))
            | (Type::Function, Value::Function(_)) => true,
            (Type::Item(item), value) => match self.items.get(item) {
                Some(item) => meter.nested(1, |meter| self.item_takes(item, value, meter))?,
                None => true,
            },
            _ => false,
        })
    }

    fn item_takes(&self, item: &Item, value: &Value, meter: &mut Meter) -> Outcome<bool> {
        meter.step(1)?;
        let whole = if item.collection {
            let Value::List(values) = value else {
                return Ok(false);
            };
            for value in values.iter() {
                if !self.one_takes(item, value, meter)? {
                    return Ok(false);
                }
            }
            true
        } else {
            self.one_takes(item, value, meter)?
        };
        match &item.constraint {
            Some(constraint) if whole => constraint.matches_within(value, &NoScope, meter),
            _ => Ok(whole),
        }
    }

    fn one_takes(&self, item: &Item, value: &Value, meter: &mut Meter) -> Outcome<bool> {
        if item.components.is_empty() {
            if !self.takes(item.base, value, meter)? {
                return Ok(false);
            }
        } else if let Value::Context(context) = value {
            for (name, kind) in &item.components {
                meter.step(1)?;
                let Some(value) = context.get(name) else {
                    return Ok(false);
                };
                if !self.takes(*kind, value, meter)? {
                    return Ok(false);
                }
            }
        } else if !value.is_null() {
            return Ok(false);
        }
        match &item.allowed {
            Some(allowed) if !value.is_null() => allowed.matches_within(value, &NoScope, meter),
            _ => Ok(true),
        }
    }

    /// A value as one of a type, with FEEL's conversions: a list of one and its item, a date and its midnight. `None`
    /// where it does not conform.
    pub(crate) fn coerce(&self, kind: Type, value: Value, meter: &mut Meter) -> Outcome<Option<Value>> {
        if self.takes(kind, &value, meter)? {
            return Ok(Some(value));
        }
        if let (Type::DateTime, Value::Date(date)) = (self.plain(kind), &value) {
            return Ok(Some(Value::date_time(date.at_midnight(Some(Zone::UTC)))));
        }
        if let Value::List(items) = &value {
            if let [single] = &***items
                && self.takes(kind, single, meter)?
            {
                return Ok(Some(single.clone()));
            }
            return Ok(None);
        }
        let wrapped = Value::list(vec![value]);
        Ok(self.takes(kind, &wrapped, meter)?.then_some(wrapped))
    }

    /// A type as FEEL writes it, without its allowed values. What nests too deep or grows too long is `Any`.
    pub(crate) fn written(&self, kind: Type) -> String {
        let mut out = String::new();
        self.write(kind, 0, &mut out);
        out
    }

    fn write(&self, kind: Type, depth: usize, out: &mut String) {
        let item = match kind {
            Type::Item(number) => self
                .items
                .get(number)
                .filter(|_| depth < MAX_TYPE_CHAIN && out.len() < MAX_WRITTEN),
            _ => None,
        };
        let Some(item) = item else {
            out.push_str(&if matches!(kind, Type::Item(_)) {
                "Any".to_owned()
            } else {
                self.name(kind)
            });
            return;
        };
        out.push_str(if item.collection { "list<" } else { "" });
        if let Some((parameters, result)) = &item.function {
            out.push_str("function<");
            for (index, parameter) in parameters.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                self.write(*parameter, depth + 1, out);
            }
            out.push_str(">->");
            self.write(*result, depth + 1, out);
        } else if item.components.is_empty() {
            self.write(item.base, depth + 1, out);
        } else {
            out.push_str("context<");
            for (index, (name, kind)) in item.components.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                out.push_str(name);
                out.push_str(": ");
                self.write(*kind, depth + 1, out);
            }
            out.push('>');
        }
        out.push_str(if item.collection { ">" } else { "" });
    }

    /// Whether a type is that of functions.
    pub(crate) fn is_function(&self, kind: Type) -> bool {
        self.plain(kind) == Type::Function
    }

    /// A type without the names that it has been given.
    fn plain(&self, mut kind: Type) -> Type {
        for _ in 0..=MAX_TYPE_CHAIN {
            match kind {
                Type::Item(number) => match self.items.get(number) {
                    Some(item) if !item.collection && item.components.is_empty() => kind = item.base,
                    _ => return kind,
                },
                _ => return kind,
            }
        }
        kind
    }

    /// A value from outside: where the type wants a date, a time or a duration, a text that writes one is read, since
    /// variables that were JSON have no other form for it.
    pub(crate) fn read(&self, kind: Type, value: &Value, meter: &mut Meter) -> Outcome<Value> {
        meter.step(1)?;
        match (self.plain(kind), value) {
            (
                kind @ (Type::Date
                | Type::Time
                | Type::DateTime
                | Type::DaysTimeDuration
                | Type::YearsMonthsDuration),
                Value::String(text),
            ) => match Value::from_temporal(text) {
                Some(read) if self.takes(kind, &read, meter)? => Ok(read),
                Some(Value::Date(date)) if kind == Type::DateTime => {
                    Ok(Value::date_time(date.at_midnight(Some(Zone::UTC))))
                }
                _ => Ok(value.clone()),
            },
            (Type::Item(number), value) => match self.items.get(number) {
                Some(item) => meter.nested(1, |meter| self.read_item(item, value, meter)),
                None => Ok(value.clone()),
            },
            _ => Ok(value.clone()),
        }
    }

    fn read_item(&self, item: &Item, value: &Value, meter: &mut Meter) -> Outcome<Value> {
        match value {
            Value::List(values) if item.collection => {
                let read = values.iter().map(|value| self.read_one(item, value, meter));
                let read = read.collect::<Outcome<Vec<_>>>()?;
                meter.list(read)
            }
            value => self.read_one(item, value, meter),
        }
    }

    fn read_one(&self, item: &Item, value: &Value, meter: &mut Meter) -> Outcome<Value> {
        if item.components.is_empty() {
            return self.read(item.base, value, meter);
        }
        let Value::Context(context) = value else {
            return Ok(value.clone());
        };
        let mut entries = Vec::with_capacity(context.len());
        for (name, value) in context.iter() {
            meter.step(item.components.len() as u64 / 8)?;
            let kind = item.components.iter().find(|(component, _)| component == name);
            let value = match kind {
                Some((_, kind)) => self.read(*kind, value, meter)?,
                None => value.clone(),
            };
            entries.push((name.clone(), value));
        }
        meter.context(entries)
    }
}
