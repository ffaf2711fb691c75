//! Decision tables.

use std::sync::Arc;

use tidegate_expression::{Context, Meter, Value};

use crate::error::{DecisionCode, RuleOutcome};
use crate::evaluate::{Outcome, Session, brief};
use crate::hit_policy::{Aggregation, HitPolicy};
use crate::limits::{MAX_INPUTS_SHOWN, MAX_RULES_SHOWN};
use crate::program::{Place, Table, TableRule, TestCode, Tests};
use crate::scope::Sight;
use crate::trail;

/// The outputs of one rule, by column.
type Row = Vec<Value>;

/// One evaluation of a table.
struct Run<'t> {
    session: &'t Arc<Session>,
    table: &'t Table,
    place: &'t Place,
    inputs: Vec<Value>,
    /// For every rule that was looked at: the input that it failed at, if it did.
    looked_at: Vec<Option<usize>>,
}

impl Session {
    pub(crate) fn table(
        self: &Arc<Self>,
        table: &Table,
        place: &Place,
        sight: &Sight,
        meter: &mut Meter,
    ) -> Outcome {
        let mut run = Run {
            session: self,
            table,
            place,
            inputs: Vec::new(),
            looked_at: Vec::new(),
        };
        run.read_inputs(sight, meter)?;
        let hits = run.hits(sight, meter)?;
        let rule = |number: &usize| trail::Rule {
            number: number + 1,
            id: table.rules.get(*number).and_then(|rule| rule.id.clone()),
        };
        self.hit(trail::Table {
            id: place.id.clone(),
            inputs: run.inputs.clone(),
            rules: hits.iter().take(MAX_RULES_SHOWN).map(rule).collect(),
        });
        run.result(&hits, sight, meter)
    }

    fn passes(&self, tests: &Tests, value: &Value, sight: &Sight, meter: &mut Meter) -> Outcome<bool> {
        match &tests.code {
            TestCode::Any => Ok(true),
            TestCode::Broken => Err(self.broken(&tests.place)),
            TestCode::Tests(code) => code
                .matches_within(value, sight, meter)
                .map_err(|error| self.failed(&tests.place, error)),
        }
    }
}

impl Run<'_> {
    fn read_inputs(&mut self, sight: &Sight, meter: &mut Meter) -> Outcome<()> {
        for (number, input) in self.table.inputs.iter().enumerate() {
            let value = self.session.text(&input.text, sight, meter)?;
            let value = self.session.program.types.read(input.kind, &value, meter)?;
            let value = self
                .session
                .conform(input.kind, value, &input.text.place, &input.label, meter)?;
            self.inputs.push(value.clone());
            if let Some(allowed) = &input.allowed
                && !value.is_null()
                && !self.session.passes(allowed, &value, sight, meter)?
            {
                let message = format!(
                    "input {} (\"{}\") is {}, which is not one of its allowed values",
                    number + 1,
                    input.label,
                    brief(&value)
                );
                return Err(self.fail(DecisionCode::InputNotAllowed, message, &input.text.place));
            }
        }
        Ok(())
    }

    /// The numbers of the rules that match.
    fn hits(&mut self, sight: &Sight, meter: &mut Meter) -> Outcome<Vec<usize>> {
        let mut hits = Vec::new();
        for (number, rule) in self.table.rules.iter().enumerate() {
            meter.step(1)?;
            let mut failed_at = None;
            for (input, (tests, value)) in rule.tests.iter().zip(&self.inputs).enumerate() {
                if !self.session.passes(tests, value, sight, meter)? {
                    failed_at = Some(input);
                    break;
                }
            }
            if self.looked_at.len() < MAX_RULES_SHOWN {
                self.looked_at.push(failed_at);
            }
            if failed_at.is_none() {
                hits.push(number);
                if self.table.policy == HitPolicy::First {
                    break;
                }
            }
        }
        Ok(hits)
    }

    fn result(&self, hits: &[usize], sight: &Sight, meter: &mut Meter) -> Outcome {
        let policy = self.table.policy;
        if policy == HitPolicy::Unique && hits.len() > 1 {
            let message = format!(
                "{} rules match, and the table allows one ({})",
                hits.len(),
                numbers(hits)
            );
            return Err(self.fail(DecisionCode::NotUnique, message, self.place));
        }
        let mut rows = Vec::with_capacity(hits.len());
        for hit in hits {
            if let Some(rule) = self.table.rules.get(*hit) {
                rows.push(self.row(rule, sight, meter)?);
            }
        }
        if rows.is_empty() {
            return self.default(sight, meter);
        }
        match policy {
            HitPolicy::Any => self.same(hits, &rows, meter)?,
            HitPolicy::Priority | HitPolicy::OutputOrder => self.rank(&mut rows, sight, meter)?,
            _ => {}
        }
        match policy {
            HitPolicy::Collect(Some(aggregation)) => self.aggregate(aggregation, rows, meter),
            policy if policy.gives_list() => {
                let items = rows
                    .into_iter()
                    .map(|row| self.value(row, meter))
                    .collect::<Outcome<Vec<_>>>()?;
                meter.list(items)
            }
            _ => match rows.into_iter().next() {
                Some(row) => self.value(row, meter),
                None => Ok(Value::Null),
            },
        }
    }

    fn row(&self, rule: &TableRule, sight: &Sight, meter: &mut Meter) -> Outcome<Row> {
        let mut row = Vec::with_capacity(rule.results.len());
        for (output, result) in self.table.outputs.iter().zip(&rule.results) {
            let value = self.session.text(result, sight, meter)?;
            let value = self
                .session
                .conform(output.kind, value, &result.place, "the output", meter)?;
            if let Some(allowed) = &output.allowed
                && !value.is_null()
                && !self.session.passes(allowed, &value, sight, meter)?
            {
                let message = format!("the output {} is not one of the allowed values", brief(&value));
                return Err(self.fail(DecisionCode::OutputNotAllowed, message, &result.place));
            }
            row.push(value);
        }
        Ok(row)
    }

    /// What counts where no rule matches.
    fn default(&self, sight: &Sight, meter: &mut Meter) -> Outcome {
        if self.table.outputs.iter().all(|output| output.default.is_none()) {
            return Ok(Value::Null);
        }
        let mut row = Vec::with_capacity(self.table.outputs.len());
        for output in &self.table.outputs {
            let value = match &output.default {
                Some(text) => self.session.text(text, sight, meter)?,
                None => Value::Null,
            };
            row.push(
                self.session
                    .conform(output.kind, value, self.place, "the default output", meter)?,
            );
        }
        let value = self.value(row, meter)?;
        if self.table.policy.gives_list() {
            meter.list(vec![value])
        } else {
            Ok(value)
        }
    }

    /// One output is a value, several are a context.
    fn value(&self, mut row: Row, meter: &mut Meter) -> Outcome {
        if let ([_], Some(value)) = (
            self.table.outputs.as_slice(),
            row.pop_if(|_| self.table.outputs.len() == 1),
        ) {
            return Ok(value);
        }
        let names = self.table.outputs.iter().map(|output| output.name.clone());
        meter.context(names.zip(row).collect())
    }

    fn same(&self, hits: &[usize], rows: &[Row], meter: &mut Meter) -> Outcome<()> {
        let Some((first, others)) = rows.split_first() else {
            return Ok(());
        };
        for other in others {
            other.iter().try_for_each(|value| meter.weigh(value))?;
            if !first.iter().zip(other).all(|(a, b)| a == b) {
                let message = format!("rules match with different outputs ({})", numbers(hits));
                return Err(self.fail(DecisionCode::NotAny, message, self.place));
            }
        }
        Ok(())
    }

    /// Sorts by the place of each output among its column's values, the first column first.
    fn rank(&self, rows: &mut Vec<Row>, sight: &Sight, meter: &mut Meter) -> Outcome<()> {
        let mut orders = Vec::with_capacity(self.table.outputs.len());
        for output in &self.table.outputs {
            orders.push(match &output.priorities {
                Some(values) => {
                    let values = values.evaluate_within(sight, meter);
                    values.map_err(|error| self.session.failed(self.place, error))?
                }
                None => Value::Null,
            });
        }
        let mut ranked = Vec::with_capacity(rows.len());
        for row in rows.drain(..) {
            let mut ranks = Vec::with_capacity(row.len());
            for (order, value) in orders.iter().zip(&row) {
                let order = order.as_list().unwrap_or_default();
                meter.step(order.len() as u64)?;
                ranks.push(
                    order
                        .iter()
                        .position(|known| known == value)
                        .unwrap_or(order.len()),
                );
            }
            ranked.push((ranks, row));
        }
        ranked.sort_by(|(a, _), (b, _)| a.cmp(b));
        rows.extend(ranked.into_iter().map(|(_, row)| row));
        Ok(())
    }

    fn aggregate(&self, aggregation: Aggregation, rows: Vec<Row>, meter: &mut Meter) -> Outcome {
        let Some(expression) = aggregation.expression() else {
            return Ok(Value::Null);
        };
        let outputs = meter.list(rows.into_iter().flatten().collect())?;
        let scope: Context = [(Arc::from("outputs"), outputs)].into_iter().collect();
        expression
            .evaluate_within(&scope, meter)
            .map_err(|error| self.session.failed(self.place, error))
    }

    fn fail(
        &self,
        code: DecisionCode,
        message: String,
        place: &Place,
    ) -> tidegate_expression::EvaluationError {
        let seen = self.table.inputs.iter().zip(&self.inputs).take(MAX_INPUTS_SHOWN);
        let inputs = seen
            .map(|(input, value)| (input.label.clone(), brief(value)))
            .collect();
        let rules = self.table.rules.iter().zip(&self.looked_at).enumerate();
        let rules = rules.map(|(number, (rule, failed_at))| RuleOutcome {
            number: number + 1,
            id: rule.id.clone(),
            matched: failed_at.is_none(),
            failed_at: failed_at.map(|input| input + 1),
        });
        self.session
            .fail(code, message, place, Some(inputs), rules.collect())
    }
}

fn numbers(hits: &[usize]) -> String {
    const SHOWN: usize = 10;
    let mut shown: Vec<String> = hits.iter().take(SHOWN).map(|hit| (hit + 1).to_string()).collect();
    if hits.len() > SHOWN {
        shown.push("...".to_owned());
    }
    shown.join(", ")
}
