//! `value.name`: entries of contexts, properties of temporal values and ranges; over a list, of each item.

use crate::evaluate::{Machine, Outcome};
use crate::temporal::{Date, DaysTimeDuration, SECOND, Time, Zone};
use crate::value::{Range, Value};

impl Machine<'_> {
    pub(super) fn path(&mut self, base: &Value, name: &str) -> Outcome {
        if let Value::List(items) = base {
            self.step(items.len() as u64)?;
            let values = items
                .iter()
                .map(|item| property(item, name).unwrap_or(Value::Null))
                .collect();
            return self.list(values);
        }
        Ok(property(base, name).unwrap_or(Value::Null))
    }
}

fn property(value: &Value, name: &str) -> Option<Value> {
    match value {
        Value::Context(context) => context.get(name).cloned(),
        Value::Date(date) => date_property(date, name),
        Value::Time(time) => time_property(time, time.offset(), name),
        Value::DateTime(at) => {
            date_property(&at.date, name).or_else(|| time_property(&at.time, at.offset(), name))
        }
        Value::DaysTimeDuration(duration) => {
            let seconds = duration.nanos() / SECOND;
            let count = match name {
                "days" => seconds / 86_400,
                "hours" => seconds / 3600 % 24,
                "minutes" => seconds / 60 % 60,
                "seconds" => seconds % 60,
                _ => return None,
            };
            i64::try_from(count).ok().map(Value::from)
        }
        Value::YearsMonthsDuration(duration) => match name {
            "years" => Some((duration.months() / 12).into()),
            "months" => Some((duration.months() % 12).into()),
            _ => None,
        },
        Value::Range(range) => range_property(range, name),
        _ => None,
    }
}

fn date_property(date: &Date, name: &str) -> Option<Value> {
    let number = match name {
        "year" => i64::from(date.year()),
        "month" => i64::from(date.month()),
        "day" => i64::from(date.day()),
        "weekday" => i64::from(date.weekday()),
        _ => return None,
    };
    Some(number.into())
}

fn time_property(time: &Time, offset: Option<i32>, name: &str) -> Option<Value> {
    match name {
        "hour" => Some(time.hour().into()),
        "minute" => Some(time.minute().into()),
        "second" => Some(time.seconds().into()),
        "time offset" => {
            DaysTimeDuration::from_nanos(i128::from(offset?) * SECOND).map(Value::DaysTimeDuration)
        }
        "timezone" => time.zone.as_ref().and_then(Zone::name).map(Value::from),
        _ => None,
    }
}

fn range_property(range: &Range, name: &str) -> Option<Value> {
    match name {
        _ if range.excluded => None,
        "start" => Some(range.start.clone()),
        "end" => Some(range.end.clone()),
        "start included" => Some(range.start_included.into()),
        "end included" => Some(range.end_included.into()),
        _ => None,
    }
}
