//! Functions that make a value of one type from another.

use super::{BuiltIn, given, row};
use crate::decimal::Decimal;
use crate::evaluate::{Machine, Outcome};
use crate::temporal::{
    Date, DateTime, DaysTimeDuration, SECOND, Time, YearsMonthsDuration, Zone, parse_date, parse_date_time,
    parse_duration, parse_time,
};
use crate::value::{Range, Value};

pub(super) const TABLE: &[BuiltIn] = &[
    row("date", &[&["from"], &["year", "month", "day"]], date),
    row(
        "time",
        &[&["from"], &["hour", "minute", "second", "offset?"]],
        time,
    ),
    row(
        "date and time",
        &[
            &["from"],
            &["date", "time"],
            &["year", "month", "day", "hour", "minute", "second"],
            &["year", "month", "day", "hour", "minute", "second", "offset"],
        ],
        date_and_time,
    ),
    row(
        "number",
        &[&["from", "grouping separator?", "decimal separator?"]],
        number,
    ),
    row("string", &[&["from"]], string),
    row("duration", &[&["from"]], duration),
    row("years and months duration", &[&["from", "to"]], years_and_months),
    row("range", &[&["from"]], range),
    // Not of the standard, but common in models.
    row("to json", &[&["value"]], to_json),
    row("from json", &[&["value"]], from_json),
];

fn whole<T: TryFrom<i64>>(value: &Value) -> Option<T> {
    value.as_number()?.to_i64()?.try_into().ok()
}

fn ymd(year: &Value, month: &Value, day: &Value) -> Option<Date> {
    Date::new(whole(year)?, whole(month)?, whole(day)?)
}

fn date(_: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let date = match arguments {
        [Value::String(text)] => parse_date(text),
        [Value::Date(date)] => Some(*date),
        [Value::DateTime(at)] => Some(at.date),
        [year, month, day] => ymd(year, month, day),
        _ => None,
    };
    Ok(date.map_or(Value::Null, Value::Date))
}

fn clock(hour: &Value, minute: &Value, second: &Value, zone: Option<Zone>) -> Option<Time> {
    let nanos = second
        .as_number()
        .filter(|second| !second.is_negative())?
        .to_scaled_i128(9)?;
    let (second, nano) = (u8::try_from(nanos / SECOND).ok()?, (nanos % SECOND) as u32);
    Time::new(whole(hour)?, whole(minute)?, second, nano, zone)
}

fn offset(duration: &DaysTimeDuration) -> Option<Zone> {
    let seconds = i32::try_from(duration.nanos() / SECOND).ok()?;
    (seconds.unsigned_abs() <= 18 * 3600).then_some(Zone::Offset(seconds))
}

fn time(_: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let time = match arguments {
        [Value::String(text)] => parse_time(text),
        [Value::Time(time)] => Some((**time).clone()),
        [Value::Date(date)] => Some(date.at_midnight(Some(Zone::UTC)).time),
        [Value::DateTime(at)] => Some(at.time.clone()),
        [hour, minute, second] | [hour, minute, second, Value::Null] => clock(hour, minute, second, None),
        [hour, minute, second, Value::DaysTimeDuration(by)] => {
            offset(by).and_then(|zone| clock(hour, minute, second, Some(zone)))
        }
        _ => None,
    };
    Ok(time.map_or(Value::Null, Value::time))
}

fn zone_of(value: &Value) -> Option<Option<Zone>> {
    match value {
        Value::Null => Some(None),
        Value::DaysTimeDuration(duration) => offset(duration).map(Some),
        Value::String(name) => parse_time(&format!("00:00:00@{name}")).map(|time| time.zone),
        _ => None,
    }
}

fn date_and_time(_: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let at = match arguments {
        [Value::String(text)] => parse_date_time(text),
        [Value::DateTime(at)] => Some((**at).clone()),
        [Value::Date(date)] => Some(date.at_midnight(Some(Zone::UTC))),
        [Value::Date(date), Value::Time(time)] => Some(DateTime {
            date: *date,
            time: (**time).clone(),
        }),
        [Value::DateTime(at), Value::Time(time)] => Some(DateTime {
            date: at.date,
            time: (**time).clone(),
        }),
        [year, month, day, hour, minute, second, zone @ ..] if zone.len() <= 1 => ymd(year, month, day)
            .and_then(|date| {
                let zone = zone_of(zone.first().unwrap_or(&Value::Null))?;
                Some(DateTime {
                    date,
                    time: clock(hour, minute, second, zone)?,
                })
            }),
        _ => None,
    };
    Ok(at.map_or(Value::Null, Value::date_time))
}

fn number(_: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let number = match arguments {
        [Value::Number(number)] => Some(*number),
        [Value::String(text)] => separated(text, None, None),
        [Value::String(text), grouping] => separated(text, Some(grouping), None),
        [Value::String(text), grouping, point] => separated(text, Some(grouping), Some(point)),
        _ => None,
    };
    Ok(number.into())
}

fn separated(text: &str, grouping: Option<&Value>, point: Option<&Value>) -> Option<Decimal> {
    let symbol = |value: Option<&Value>, allowed: &[&str]| match given(value) {
        None => Some(None),
        Some(Value::String(symbol)) if allowed.contains(&&**symbol) => Some(Some(symbol.to_string())),
        Some(_) => None,
    };
    let grouping = symbol(grouping, &[" ", ",", "."])?;
    let point = symbol(point, &[",", "."])?;
    if grouping.is_some() && grouping == point {
        return None;
    }
    let text = grouping.map_or(text.to_owned(), |grouping| text.replace(&grouping, ""));
    let text = point.map_or(text.clone(), |point| text.replace(&point, "."));
    text.parse().ok()
}

fn string(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    match arguments {
        [Value::String(_)] | [Value::Null] => Ok(arguments.first().cloned().unwrap_or(Value::Null)),
        [value] => {
            machine.weigh(value)?;
            machine.string(value.to_string())
        }
        _ => Ok(Value::Null),
    }
}

fn duration(_: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    Ok(match arguments {
        [Value::String(text)] => parse_duration(text).unwrap_or(Value::Null),
        [value @ (Value::DaysTimeDuration(_) | Value::YearsMonthsDuration(_))] => value.clone(),
        _ => Value::Null,
    })
}

fn years_and_months(_: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let at = |value: &Value| match value {
        Value::Date(date) => Some(*date),
        Value::DateTime(at) => Some(at.date),
        _ => None,
    };
    let [from, to] = arguments else {
        return Ok(Value::Null);
    };
    let duration = at(from)
        .zip(at(to))
        .and_then(|(from, to)| YearsMonthsDuration::between(&from, &to));
    Ok(duration.map_or(Value::Null, Value::YearsMonthsDuration))
}

/// Reads a range such as `[1..3]` whose ends are literals.
fn range(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text)] = arguments else {
        return Ok(Value::Null);
    };
    machine.step(text.len() as u64)?;
    match crate::expression::literal_range(text) {
        Some(range) if ordered(&range) => machine.range(range),
        _ => Ok(Value::Null),
    }
}

fn ordered(range: &Range) -> bool {
    let open = range.start.is_null() || range.end.is_null();
    let both = range.start.is_null() && range.end.is_null();
    !both && (open || crate::compare::order(&range.start, &range.end).is_some_and(std::cmp::Ordering::is_le))
}

fn to_json(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [value] = arguments else {
        return Ok(Value::Null);
    };
    machine.weigh(value)?;
    machine.string(value.to_json())
}

fn from_json(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let [Value::String(text)] = arguments else {
        return Ok(Value::Null);
    };
    machine.step(text.len() as u64)?;
    machine.room(text.len().saturating_mul(size_of::<Value>()))?;
    Ok(Value::from_json(text).unwrap_or(Value::Null))
}
