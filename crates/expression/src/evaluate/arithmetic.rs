//! FEEL's arithmetic over numbers, texts, dates, times and durations. What is not defined is null.

use std::sync::Arc;

use crate::Language;
use crate::decimal::Decimal;
use crate::evaluate::{Machine, Outcome};
use crate::expression::Code;
use crate::temporal::{DateTime, DaysTimeDuration, YearsMonthsDuration, Zone};
use crate::tree::{Arithmetic, Link, NodeId};
use crate::unified;
use crate::value::Value;

impl Machine<'_> {
    pub(super) fn chain(&mut self, code: &Arc<Code>, first: NodeId, links: &[Link]) -> Outcome {
        let mut left = self.evaluate(code, first)?;
        for link in links {
            let right = self.evaluate(code, link.operand)?;
            left = match code.language {
                Language::Unified => unified::arithmetic(self, link.operator, &left, &right)?,
                Language::Feel => self.arithmetic(link.operator, &left, &right)?,
            };
        }
        Ok(left)
    }

    fn arithmetic(&mut self, operator: Arithmetic, left: &Value, right: &Value) -> Outcome {
        if let (Arithmetic::Add, Value::String(left), Value::String(right)) = (operator, left, right) {
            return self.join_texts(left, right);
        }
        let result = match operator {
            Arithmetic::Add => add(left, right),
            Arithmetic::Subtract => subtract(left, right),
            Arithmetic::Multiply => multiply(left, right),
            Arithmetic::Divide => divide(left, right),
            Arithmetic::Power => numbers(left, right, Decimal::power),
            Arithmetic::Remainder => numbers(left, right, Decimal::remainder),
        };
        Ok(result.unwrap_or(Value::Null))
    }

    pub(crate) fn join_texts(&mut self, left: &str, right: &str) -> Outcome {
        self.room(left.len() + right.len())?;
        self.string([left, right].concat())
    }

    pub(super) fn negative(&mut self, code: &Arc<Code>, operand: NodeId) -> Outcome {
        let value = self.evaluate(code, operand)?;
        match code.language {
            Language::Feel => Ok(negate(&value).unwrap_or(Value::Null)),
            Language::Unified => unified::arithmetic(self, Arithmetic::Subtract, &Value::from(0i64), &value),
        }
    }
}

fn numbers(
    left: &Value,
    right: &Value,
    operation: impl Fn(&Decimal, &Decimal) -> Option<Decimal>,
) -> Option<Value> {
    operation(left.as_number()?, right.as_number()?).map(Value::Number)
}

fn days(nanos: i128) -> Option<Value> {
    DaysTimeDuration::from_nanos(nanos).map(Value::DaysTimeDuration)
}

fn months(months: i64) -> Option<Value> {
    YearsMonthsDuration::from_months(months).map(Value::YearsMonthsDuration)
}

pub(crate) fn add(left: &Value, right: &Value) -> Option<Value> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a.add(b).map(Value::Number),
        (Value::DaysTimeDuration(a), Value::DaysTimeDuration(b)) => days(a.nanos() + b.nanos()),
        (Value::YearsMonthsDuration(a), Value::YearsMonthsDuration(b)) => months(a.months() + b.months()),
        (Value::DateTime(at), Value::DaysTimeDuration(by))
        | (Value::DaysTimeDuration(by), Value::DateTime(at)) => at.add(*by).map(Value::date_time),
        (Value::DateTime(at), Value::YearsMonthsDuration(by))
        | (Value::YearsMonthsDuration(by), Value::DateTime(at)) => {
            at.add_months(by.months()).map(Value::date_time)
        }
        (Value::Date(at), Value::DaysTimeDuration(by)) | (Value::DaysTimeDuration(by), Value::Date(at)) => {
            at.at_midnight(None).add(*by).map(|at| Value::Date(at.date))
        }
        (Value::Date(at), Value::YearsMonthsDuration(by))
        | (Value::YearsMonthsDuration(by), Value::Date(at)) => at.add_months(by.months()).map(Value::Date),
        (Value::Time(at), Value::DaysTimeDuration(by)) | (Value::DaysTimeDuration(by), Value::Time(at)) => {
            Some(Value::time(at.add(*by)))
        }
        _ => None,
    }
}

pub(crate) fn subtract(left: &Value, right: &Value) -> Option<Value> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a.subtract(b).map(Value::Number),
        (Value::Time(a), Value::Time(b)) => (a.zone.is_some() == b.zone.is_some())
            .then(|| days(a.nanos() - b.nanos()))
            .flatten(),
        (Value::Date(_) | Value::DateTime(_), Value::Date(_) | Value::DateTime(_)) => instant(left)?
            .since(&instant(right)?)
            .map(Value::DaysTimeDuration),
        (Value::DaysTimeDuration(_), Value::Date(_) | Value::DateTime(_) | Value::Time(_)) => None,
        (Value::YearsMonthsDuration(_), Value::Date(_) | Value::DateTime(_)) => None,
        (_, Value::DaysTimeDuration(_) | Value::YearsMonthsDuration(_)) => add(left, &negate(right)?),
        _ => None,
    }
}

/// A date counts as its midnight in UTC.
fn instant(value: &Value) -> Option<DateTime> {
    match value {
        Value::Date(date) => Some(date.at_midnight(Some(Zone::UTC))),
        Value::DateTime(at) => Some((**at).clone()),
        _ => None,
    }
}

pub(crate) fn negate(value: &Value) -> Option<Value> {
    match value {
        Value::Number(number) => Some(Value::Number(number.negate())),
        Value::DaysTimeDuration(duration) => Some(Value::DaysTimeDuration(duration.negate())),
        Value::YearsMonthsDuration(duration) => Some(Value::YearsMonthsDuration(duration.negate())),
        _ => None,
    }
}

pub(crate) fn multiply(left: &Value, right: &Value) -> Option<Value> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a.multiply(b).map(Value::Number),
        (duration, Value::Number(factor)) | (Value::Number(factor), duration) => {
            scale(duration, |number| number.multiply(factor))
        }
        _ => None,
    }
}

fn divide(left: &Value, right: &Value) -> Option<Value> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a.divide(b).map(Value::Number),
        (Value::DaysTimeDuration(a), Value::DaysTimeDuration(b)) => Decimal::scaled(a.nanos(), 0)?
            .divide(&Decimal::scaled(b.nanos(), 0)?)
            .map(Value::Number),
        (Value::YearsMonthsDuration(a), Value::YearsMonthsDuration(b)) => Decimal::from(a.months())
            .divide(&b.months().into())
            .map(Value::Number),
        (duration, Value::Number(divisor)) => scale(duration, |number| number.divide(divisor)),
        _ => None,
    }
}

fn scale(duration: &Value, by: impl Fn(&Decimal) -> Option<Decimal>) -> Option<Value> {
    match duration {
        Value::DaysTimeDuration(duration) => {
            days(by(&Decimal::scaled(duration.nanos(), 0)?)?.to_scaled_i128(0)?)
        }
        Value::YearsMonthsDuration(duration) => {
            months(i64::try_from(by(&duration.months().into())?.to_scaled_i128(0)?).ok()?)
        }
        _ => None,
    }
}
