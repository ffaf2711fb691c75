//! Functions over dates, and the clock that the caller gives.

use super::{BuiltIn, item_row};
use crate::evaluate::{Machine, Outcome};
use crate::temporal::{Date, DateTime};
use crate::value::Value;

pub(super) const TABLE: &[BuiltIn] = &[
    item_row("now", &[&[]], now),
    item_row("today", &[&[]], today),
    item_row("day of year", &[&["date"]], |_, arguments| {
        of_date(arguments, |date| Some(date.day_of_year().into()))
    }),
    item_row("day of week", &[&["date"]], |_, arguments| {
        of_date(arguments, day_of_week)
    }),
    item_row("month of year", &[&["date"]], |_, arguments| {
        of_date(arguments, month_of_year)
    }),
    item_row("week of year", &[&["date"]], |_, arguments| {
        of_date(arguments, |date| date.week_of_year().map(Value::from))
    }),
    // Not of the standard, but common in models.
    item_row("last day of month", &[&["date"]], |_, arguments| {
        of_date(arguments, last_day_of_month)
    }),
];

const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn now(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let now = DateTime::from_epoch_ms(machine.scope.now_ms()).filter(|_| arguments.is_empty());
    Ok(now.map_or(Value::Null, Value::date_time))
}

fn today(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome {
    let now = DateTime::from_epoch_ms(machine.scope.now_ms()).filter(|_| arguments.is_empty());
    Ok(now.map_or(Value::Null, |now| Value::Date(now.date)))
}

fn of_date(arguments: &[Value], function: impl Fn(&Date) -> Option<Value>) -> Outcome {
    let value = match arguments {
        [Value::Date(date)] => function(date),
        [Value::DateTime(at)] => function(&at.date),
        _ => None,
    };
    Ok(value.unwrap_or(Value::Null))
}

fn day_of_week(date: &Date) -> Option<Value> {
    DAYS.get(usize::from(date.weekday()) - 1)
        .map(|day| Value::from(*day))
}

fn month_of_year(date: &Date) -> Option<Value> {
    MONTHS
        .get(usize::from(date.month()) - 1)
        .map(|month| Value::from(*month))
}

fn last_day_of_month(date: &Date) -> Option<Value> {
    let first = Date::new(date.year(), date.month(), 1)?.add_months(1)?;
    Date::from_epoch_day(first.epoch_day() - 1).map(Value::Date)
}
