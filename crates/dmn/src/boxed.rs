//! Boxed expressions: contexts, lists, relations, functions, invocations, conditions, filters and loops.

use std::sync::{Arc, LazyLock};

use tidegate_expression::{Context, Expression, Meter, Value};

use crate::evaluate::{Outcome, Session};
use crate::function::Closure;
use crate::program::{Body, Boxed, Column, Definition, Entry, Place};
use crate::scope::{Frame, Sight};

/// What one boxed expression counts as nesting, for its share of the stack.
const LEVELS: u32 = 2;

/// FEEL's own walk over lists, ranges and single values, so that both walk alike.
static WALK: LazyLock<Option<Expression>> =
    LazyLock::new(|| Expression::feel("for each in domain return each").ok());

impl Session {
    /// The value of a boxed expression.
    pub(crate) fn boxed(self: &Arc<Self>, boxed: &Boxed, sight: &mut Sight, meter: &mut Meter) -> Outcome {
        let value = meter.nested(LEVELS, |meter| {
            meter.step(1)?;
            self.body(boxed, sight, meter)
        })?;
        self.conform(boxed.result, value, &boxed.place, "the value", meter)
    }

    /// One method a kind: this frame stands on the stack once a level, so it must stay small.
    fn body(self: &Arc<Self>, boxed: &Boxed, sight: &mut Sight, meter: &mut Meter) -> Outcome {
        match &boxed.body {
            Body::Literal(text) => self.text(text, sight, meter),
            Body::Table(table) => self.table(table, &boxed.place, sight, meter),
            Body::Context(entries) => self.context(entries, sight, meter),
            Body::List(items) => self.list(items, sight, meter),
            Body::Relation { columns, rows } => self.relation(columns, rows, sight, meter),
            Body::Function(definition) => self.closure(definition, None, sight, meter),
            Body::Invocation { function, bindings } => {
                self.invocation(&boxed.place, function, bindings, sight, meter)
            }
            Body::Conditional {
                condition,
                then,
                otherwise,
            } => {
                let chosen = match self.boxed(condition, sight, meter)? {
                    Value::Boolean(true) => then,
                    Value::Boolean(false) | Value::Null => otherwise,
                    _ => return Ok(Value::Null),
                };
                self.boxed(chosen, sight, meter)
            }
            Body::Filter { domain, test } => self.filter(domain, test, sight, meter),
            Body::For {
                name,
                domain,
                body,
                partial,
            } => self.for_loop(name, domain, body, *partial, sight, meter),
            Body::Quantified {
                some,
                name,
                domain,
                test,
            } => self.quantified(*some, name, domain, test, sight, meter),
            Body::Broken => Err(self.broken(&boxed.place)),
        }
    }

    fn context(self: &Arc<Self>, entries: &[Entry], sight: &mut Sight, meter: &mut Meter) -> Outcome {
        let before = sight.frames.len();
        let result = self.entries(entries, sight, meter);
        sight.frames.truncate(before);
        result
    }

    fn entries(self: &Arc<Self>, entries: &[Entry], sight: &mut Sight, meter: &mut Meter) -> Outcome {
        let mut values = Vec::with_capacity(entries.len());
        for entry in entries {
            let value = match &entry.value {
                Some(Boxed {
                    body: Body::Function(definition),
                    ..
                }) => self.closure(definition, entry.name.as_ref(), sight, meter)?,
                Some(value) => self.boxed(value, sight, meter)?,
                None => Value::Null,
            };
            let Some(name) = &entry.name else {
                return self.conform(entry.kind, value, &entry.place, "the result", meter);
            };
            let value = self.conform(entry.kind, value, &entry.place, name, meter)?;
            sight.bind(name, value.clone());
            values.push((name.clone(), value));
        }
        meter.context(values)
    }

    fn list(self: &Arc<Self>, items: &[Boxed], sight: &mut Sight, meter: &mut Meter) -> Outcome {
        let items = items
            .iter()
            .map(|item| self.boxed(item, sight, meter))
            .collect::<Outcome<Vec<_>>>()?;
        meter.list(items)
    }

    fn relation(
        self: &Arc<Self>,
        columns: &[Column],
        rows: &[Vec<Boxed>],
        sight: &mut Sight,
        meter: &mut Meter,
    ) -> Outcome {
        let mut values = Vec::with_capacity(rows.len());
        for row in rows {
            let mut cells = Vec::with_capacity(row.len());
            for (column, cell) in columns.iter().zip(row) {
                let value = self.boxed(cell, sight, meter)?;
                cells.push((
                    column.name.clone(),
                    self.conform(column.kind, value, &cell.place, &column.name, meter)?,
                ));
            }
            values.push(meter.context(cells)?);
        }
        meter.list(values)
    }

    fn closure(
        self: &Arc<Self>,
        definition: &Arc<Definition>,
        name: Option<&Arc<str>>,
        sight: &Sight,
        meter: &mut Meter,
    ) -> Outcome {
        meter.step(sight.frames.len() as u64)?;
        let closure = Closure {
            session: self.clone(),
            definition: definition.clone(),
            sight: sight.clone(),
            name: name.cloned(),
        };
        closure.value(meter)
    }

    fn invocation(
        self: &Arc<Self>,
        place: &Place,
        function: &Boxed,
        bindings: &[(Arc<str>, Option<Boxed>)],
        sight: &mut Sight,
        meter: &mut Meter,
    ) -> Outcome {
        let function = self.boxed(function, sight, meter)?;
        let mut arguments = Vec::with_capacity(bindings.len());
        for (name, value) in bindings {
            let value = match value {
                Some(value) => self.boxed(value, sight, meter)?,
                None => Value::Null,
            };
            arguments.push((name.clone(), value));
        }
        if !matches!(function, Value::Function(_)) {
            self.problem(
                place,
                "what is called is no function: the result is null".to_owned(),
            );
            return Ok(Value::Null);
        }
        meter
            .call(function, arguments, sight)
            .map_err(|error| self.failed(place, error))
    }

    /// An item by its position, or the items for which the test is true. A test that is no condition makes all null.
    fn filter(
        self: &Arc<Self>,
        domain: &Boxed,
        test: &Boxed,
        sight: &mut Sight,
        meter: &mut Meter,
    ) -> Outcome {
        let domain = self.boxed(domain, sight, meter)?;
        let single = [domain.clone()];
        let items: &[Value] = match &domain {
            Value::List(list) => list,
            Value::Null => return Ok(Value::Null),
            _ => &single,
        };
        let mut kept = Vec::new();
        for (index, item) in items.iter().enumerate() {
            meter.step(1)?;
            sight.frames.push(Frame::Item(item.clone()));
            let verdict = self.boxed(test, sight, meter);
            sight.frames.pop();
            match verdict? {
                Value::Boolean(true) => kept.push(item.clone()),
                Value::Number(position) if index == 0 => return Ok(at(items, position.to_i64())),
                Value::Boolean(false) | Value::Null => {}
                _ => return Ok(Value::Null),
            }
        }
        meter.list(kept)
    }

    /// The items to walk over; `None` where there is nothing to walk over.
    fn domain(
        self: &Arc<Self>,
        domain: &Boxed,
        sight: &mut Sight,
        meter: &mut Meter,
    ) -> Outcome<Option<Value>> {
        let value = self.boxed(domain, sight, meter)?;
        if matches!(value, Value::List(_)) {
            return Ok(Some(value));
        }
        let Some(walk) = &*WALK else {
            return Ok(None);
        };
        let scope: Context = [(Arc::from("domain"), value)].into_iter().collect();
        let items = walk
            .evaluate_within(&scope, meter)
            .map_err(|error| self.failed(&domain.place, error))?;
        Ok(Some(items).filter(|items| !items.is_null()))
    }

    fn for_loop(
        self: &Arc<Self>,
        name: &Arc<str>,
        domain: &Boxed,
        body: &Boxed,
        partial: bool,
        sight: &mut Sight,
        meter: &mut Meter,
    ) -> Outcome {
        let Some(domain) = self.domain(domain, sight, meter)? else {
            return Ok(Value::Null);
        };
        let so_far: Arc<str> = "partial".into();
        let mut results = Vec::new();
        for item in domain.as_list().unwrap_or_default() {
            meter.step(1)?;
            let before = sight.frames.len();
            sight.bind(name, item.clone());
            if partial {
                let results = meter.list(results.clone())?;
                sight.bind(&so_far, results);
            }
            let value = self.boxed(body, sight, meter);
            sight.frames.truncate(before);
            results.push(value?);
        }
        meter.list(results)
    }

    fn quantified(
        self: &Arc<Self>,
        some: bool,
        name: &Arc<str>,
        domain: &Boxed,
        test: &Boxed,
        sight: &mut Sight,
        meter: &mut Meter,
    ) -> Outcome {
        let Some(domain) = self.domain(domain, sight, meter)? else {
            return Ok(Value::Null);
        };
        let mut result = Value::Boolean(!some);
        for item in domain.as_list().unwrap_or_default() {
            meter.step(1)?;
            sight.bind(name, item.clone());
            let verdict = self.boxed(test, sight, meter);
            sight.frames.pop();
            match verdict? {
                Value::Boolean(truth) if truth == some => return Ok(Value::Boolean(some)),
                Value::Boolean(_) => {}
                Value::Null => result = Value::Null,
                _ => return Ok(Value::Null),
            }
        }
        Ok(result)
    }
}

/// The item at a position from one, or from the end if negative.
fn at(items: &[Value], position: Option<i64>) -> Value {
    let index = match position {
        Some(position) if position > 0 => usize::try_from(position - 1).ok(),
        Some(position) if position < 0 => usize::try_from(position.unsigned_abs())
            .ok()
            .and_then(|back| items.len().checked_sub(back)),
        _ => None,
    };
    index
        .and_then(|index| items.get(index))
        .cloned()
        .unwrap_or(Value::Null)
}
