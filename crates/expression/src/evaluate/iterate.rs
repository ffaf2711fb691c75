//! `for`, `some` and `every`. Ranges are walked, never spread out into lists.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::compare::order;
use crate::decimal::Decimal;
use crate::evaluate::{Machine, Outcome};
use crate::expression::Code;
use crate::temporal::Date;
use crate::tree::{self, NodeId};
use crate::value::{List, Value};

/// What an iterator walks over.
enum Domain {
    List(Arc<List>),
    One(Value),
    Numbers { first: Decimal, last: Decimal },
    Dates { first: Date, last: Date },
}

/// What a loop does with one round; `false` ends the loop.
type Round<'r> = &'r mut dyn FnMut(&mut Machine<'_>) -> Outcome<bool>;

impl Machine<'_> {
    pub(super) fn for_loop(
        &mut self,
        code: &Arc<Code>,
        iterators: &[tree::Iterator],
        body: NodeId,
        partial: bool,
    ) -> Outcome {
        let mut results = Vec::new();
        let name: Arc<str> = "partial".into();
        let complete = self.iterate(code, iterators, &mut |machine| {
            machine.room_for_items(results.len() + 1)?;
            let before = machine.frames.len();
            if partial {
                let so_far = machine.list(results.clone())?;
                machine.bind(&name, so_far);
            }
            let value = machine.evaluate(code, body)?;
            machine.frames.truncate(before);
            results.push(value);
            Ok(true)
        })?;
        if complete.is_none() {
            Ok(Value::Null)
        } else {
            self.list(results)
        }
    }

    /// `some` is the disjunction of all rounds, `every` their conjunction.
    pub(super) fn quantified(
        &mut self,
        code: &Arc<Code>,
        iterators: &[tree::Iterator],
        body: NodeId,
        some: bool,
    ) -> Outcome {
        let mut result = Value::Boolean(!some);
        let complete = self.iterate(code, iterators, &mut |machine| {
            match machine.evaluate(code, body)?.as_boolean() {
                Some(truth) if truth == some => {
                    result = Value::Boolean(some);
                    return Ok(false);
                }
                Some(_) => {}
                None => result = Value::Null,
            }
            Ok(true)
        })?;
        Ok(if complete.is_none() { Value::Null } else { result })
    }

    /// Runs a round for each combination; `None` if something cannot be walked over.
    fn iterate(
        &mut self,
        code: &Arc<Code>,
        iterators: &[tree::Iterator],
        round: Round<'_>,
    ) -> Outcome<Option<bool>> {
        let Some((iterator, inner)) = iterators.split_first() else {
            return round(self).map(Some);
        };
        let Some(domain) = self.domain(code, iterator)? else {
            return Ok(None);
        };
        let before = self.frames.len();
        let mut index = 0;
        let mut current = domain.first();
        while let Some(value) = current {
            self.step(1)?;
            current = domain.next(&value, index);
            index += 1;
            self.bind(&iterator.name, value);
            let went_on = self.iterate(code, inner, round)?;
            self.frames.truncate(before);
            if went_on != Some(true) {
                return Ok(went_on);
            }
        }
        Ok(Some(true))
    }

    fn domain(&mut self, code: &Arc<Code>, iterator: &tree::Iterator) -> Outcome<Option<Domain>> {
        let from = self.evaluate(code, iterator.domain)?;
        if let Some(to) = iterator.to {
            let to = self.evaluate(code, to)?;
            return Ok(Domain::between(&from, &to));
        }
        Ok(match from {
            Value::List(list) => Some(Domain::List(list)),
            // Only `a..b` may run backwards.
            Value::Range(range) if order(&range.start, &range.end) == Some(Ordering::Greater) => None,
            Value::Range(range) => {
                let mut domain = Domain::between(&range.start, &range.end);
                domain = if range.start_included {
                    domain
                } else {
                    domain.and_then(|domain| domain.inward(true))
                };
                if range.end_included {
                    domain
                } else {
                    domain.and_then(|domain| domain.inward(false))
                }
            }
            Value::Null => None,
            other => Some(Domain::One(other)),
        })
    }
}

impl Domain {
    fn between(from: &Value, to: &Value) -> Option<Domain> {
        match (from, to) {
            (Value::Number(first), Value::Number(last)) => (first.is_integer() && last.is_integer())
                .then_some(Domain::Numbers {
                    first: *first,
                    last: *last,
                }),
            (Value::Date(first), Value::Date(last)) => Some(Domain::Dates {
                first: *first,
                last: *last,
            }),
            _ => None,
        }
    }

    /// Without its first or last element; an empty list where nothing is left.
    fn inward(self, start: bool) -> Option<Domain> {
        let (first, last) = (self.first()?, self.last()?);
        let Some(moved) = (if start {
            self.step_from(&first, false)
        } else {
            self.step_from(&last, true)
        }) else {
            return Some(Domain::List(Arc::default()));
        };
        if start {
            Domain::between(&moved, &last)
        } else {
            Domain::between(&first, &moved)
        }
    }

    fn first(&self) -> Option<Value> {
        match self {
            Domain::List(list) => list.first().cloned(),
            Domain::One(value) => Some(value.clone()),
            Domain::Numbers { first, .. } => Some(Value::Number(*first)),
            Domain::Dates { first, .. } => Some(Value::Date(*first)),
        }
    }

    fn last(&self) -> Option<Value> {
        match self {
            Domain::Numbers { last, .. } => Some(Value::Number(*last)),
            Domain::Dates { last, .. } => Some(Value::Date(*last)),
            Domain::List(_) | Domain::One(_) => None,
        }
    }

    /// What follows `value`, which stood at `index`.
    fn next(&self, value: &Value, index: usize) -> Option<Value> {
        match self {
            Domain::List(list) => list.get(index + 1).cloned(),
            Domain::One(_) => None,
            Domain::Numbers { .. } | Domain::Dates { .. } => {
                if crate::compare::equal(value, &self.last()?) == Some(true) {
                    return None;
                }
                self.step_from(value, false)
            }
        }
    }

    /// One step towards the end, or back; `None` where a range has one element only.
    fn step_from(&self, value: &Value, back: bool) -> Option<Value> {
        let direction = |order: Ordering| match (order, back) {
            (Ordering::Equal, _) => None,
            (Ordering::Less, false) | (Ordering::Greater, true) => Some(1i64),
            (Ordering::Greater, false) | (Ordering::Less, true) => Some(-1),
        };
        match (self, value) {
            (Domain::Numbers { first, last }, Value::Number(number)) => {
                number.add(&direction(first.cmp(last))?.into()).map(Value::Number)
            }
            (Domain::Dates { first, last }, Value::Date(date)) => {
                Date::from_epoch_day(date.epoch_day() + direction(first.cmp(last))?).map(Value::Date)
            }
            _ => None,
        }
    }
}
