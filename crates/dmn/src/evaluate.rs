//! One evaluation: decisions in the order of their requirements, each once, all within the same limits.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_expression::{EvaluationCode, EvaluationError, Meter, Scope, Value};

use crate::error::{DecisionCode, DecisionError, RuleOutcome};
use crate::function::{Knowledge, ServiceFunction};
use crate::limits::{MAX_INPUTS_SHOWN, MAX_TRAIL, MAX_VALUE_SHOWN};
use crate::parse::within;
use crate::program::{Code, Element, Kind, Place, Program, Text};
use crate::requirement;
use crate::scope::Sight;
use crate::trail::{Problem, Step, Table};
use crate::types::Type;

/// The result of a part of an evaluation. What an error says to people is kept in the session.
pub(crate) type Outcome<T = Value> = Result<T, EvaluationError>;

/// Values by the number of their element.
pub(crate) type Known = HashMap<usize, Value>;

/// What all parts of one evaluation share, functions that are called from FEEL included.
#[derive(Debug)]
pub(crate) struct Session {
    pub program: Arc<Program>,
    pub now_ms: i64,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    /// Decisions that are being made, innermost last.
    open: Vec<Step>,
    done: Vec<Step>,
    /// Problems with inputs of the decision that is made next.
    pending: Vec<Problem>,
    failure: Option<Box<DecisionError>>,
    entries: usize,
}

impl Session {
    pub(crate) fn new(program: Arc<Program>, now_ms: i64) -> Arc<Session> {
        Arc::new(Session {
            program,
            now_ms,
            log: Mutex::default(),
        })
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the session: its steps and the failure. They hold functions that hold the session, so they must leave it.
    pub(crate) fn finish(&self) -> (Vec<Step>, Option<Box<DecisionError>>) {
        let log = std::mem::take(&mut *self.log());
        (log.done, log.failure)
    }

    // Decisions.

    /// Makes decisions; what they need and is not known is made first or read from the variables.
    pub(crate) fn solve(
        self: &Arc<Self>,
        goals: &[usize],
        mut known: Known,
        variables: Option<&dyn Scope>,
        meter: &mut Meter,
    ) -> Outcome<Known> {
        meter.step(self.program.elements.len() as u64 / 64)?;
        for number in requirement::order(&self.program, goals, &known) {
            meter.step(1)?;
            let Some(element) = self.program.elements.get(number) else {
                continue;
            };
            let value = match &element.kind {
                Kind::Input => self.input(element, variables, meter)?,
                Kind::Decision(_) => self.decision(element, &known, variables, meter)?,
                Kind::Knowledge(_) | Kind::Service(_) => self.function(number, meter)?,
            };
            known.insert(number, value);
        }
        Ok(known)
    }

    fn input(&self, element: &Element, variables: Option<&dyn Scope>, meter: &mut Meter) -> Outcome {
        let given = variables.and_then(|variables| variables.lookup(&element.variable));
        self.given(element, given.unwrap_or(Value::Null), meter)
    }

    /// A value from outside as one of the type of an input or of an input decision.
    pub(crate) fn given(&self, element: &Element, value: Value, meter: &mut Meter) -> Outcome {
        let value = self.program.types.read(element.result, &value, meter)?;
        self.conform(element.result, value, &element.place, &element.variable, meter)
    }

    fn decision(
        self: &Arc<Self>,
        element: &Element,
        known: &Known,
        variables: Option<&dyn Scope>,
        meter: &mut Meter,
    ) -> Outcome {
        let Kind::Decision(logic) = &element.kind else {
            return Ok(Value::Null);
        };
        let mut sight = self.sight(element, known, variables, meter)?;
        self.begin(element, known);
        if element.broken {
            return Err(self.broken(&element.place));
        }
        let value = match logic {
            Some(logic) => self.boxed(logic, &mut sight, meter)?,
            None => Value::Null,
        };
        let value = self.conform(element.result, value, &element.place, &element.name, meter)?;
        self.end(value.clone());
        Ok(value)
    }

    /// What the logic of an element sees: what it requires.
    pub(crate) fn sight(
        self: &Arc<Self>,
        element: &Element,
        known: &Known,
        variables: Option<&dyn Scope>,
        meter: &mut Meter,
    ) -> Outcome<Sight> {
        type Entries = Vec<(Arc<str>, Value)>;
        let mut root: Entries = Vec::with_capacity(element.needs.len());
        let mut imports: Vec<(Arc<str>, Entries)> = Vec::new();
        for need in &element.needs {
            meter.step(1)?;
            let Some(target) = self.program.elements.get(need.target) else {
                continue;
            };
            let value = if need.knowledge {
                self.function(need.target, meter)?
            } else {
                known.get(&need.target).cloned().unwrap_or(Value::Null)
            };
            let entry = (target.variable.clone(), value);
            match &need.import {
                None => root.push(entry),
                Some(import) => match imports.iter_mut().find(|(name, _)| name == import) {
                    Some((_, entries)) => entries.push(entry),
                    None => imports.push((import.clone(), vec![entry])),
                },
            }
        }
        if let Some(variables) = variables {
            meter.step(element.undeclared.len() as u64)?;
            let given = |name: &Arc<str>| Some((name.clone(), variables.lookup(name)?));
            root.extend(element.undeclared.iter().filter_map(given));
        }
        for (name, entries) in imports {
            root.push((name, meter.context(entries)?));
        }
        Ok(Sight {
            root: Arc::new(root.into_iter().collect()),
            frames: Vec::new(),
            now_ms: self.now_ms,
        })
    }

    /// Business knowledge or a service as a function.
    fn function(self: &Arc<Self>, number: usize, meter: &mut Meter) -> Outcome {
        match self.program.elements.get(number).map(|element| &element.kind) {
            Some(Kind::Knowledge(Some(definition))) => {
                let (session, definition) = (self.clone(), definition.clone());
                meter.function(
                    Arc::new(Knowledge {
                        session,
                        number,
                        definition,
                    }),
                    [],
                )
            }
            Some(Kind::Service(service)) => {
                let (session, parameters) = (self.clone(), service.parameters.clone());
                meter.function(
                    Arc::new(ServiceFunction {
                        session,
                        number,
                        parameters,
                    }),
                    [],
                )
            }
            _ => Ok(Value::Null),
        }
    }

    /// The result of a service: the value of its one output, or a context of all.
    pub(crate) fn service(
        self: &Arc<Self>,
        number: usize,
        arguments: Vec<Value>,
        meter: &mut Meter,
    ) -> Outcome {
        let Some(element) = self.program.elements.get(number) else {
            return Ok(Value::Null);
        };
        let Kind::Service(service) = &element.kind else {
            return Ok(Value::Null);
        };
        if element.broken {
            return Err(self.broken(&element.place));
        }
        let mut known = Known::new();
        for (input, value) in service.inputs.iter().zip(arguments) {
            if let Some(element) = self.program.elements.get(*input) {
                known.insert(*input, self.given(element, value, meter)?);
            }
        }
        let known = self.solve(&service.outputs, known, None, meter)?;
        let value = |output: &usize| known.get(output).cloned().unwrap_or(Value::Null);
        let value = match service.outputs.as_slice() {
            [single] => value(single),
            outputs => {
                let entry = |output: &usize| {
                    let element = self.program.elements.get(*output)?;
                    Some((element.variable.clone(), value(output)))
                };
                meter.context(outputs.iter().filter_map(entry).collect())?
            }
        };
        self.conform(element.result, value, &element.place, &element.name, meter)
    }

    // Values.

    /// The value of a FEEL text.
    pub(crate) fn text(&self, text: &Text, sight: &Sight, meter: &mut Meter) -> Outcome {
        match &text.code {
            Code::Feel(expression) => {
                let value = expression.evaluate_within(sight, meter);
                value.map_err(|error| self.failed(&text.place, error))
            }
            Code::Empty => Ok(Value::Null),
            Code::Broken => Err(self.broken(&text.place)),
        }
    }

    /// A value as one of a type. One that is not becomes null, and that is noted.
    pub(crate) fn conform(
        &self,
        kind: Type,
        value: Value,
        place: &Place,
        what: &str,
        meter: &mut Meter,
    ) -> Outcome {
        if kind == Type::Any || value.is_null() {
            return Ok(value);
        }
        let shown = value.clone();
        match self.program.types.coerce(kind, value, meter)? {
            Some(value) => Ok(value),
            None => {
                let message = format!(
                    "{what} is {}, which is not of the type {}: it becomes null",
                    brief(&shown),
                    self.program.types.name(kind)
                );
                self.problem(place, message);
                Ok(Value::Null)
            }
        }
    }

    // What happened.

    fn begin(&self, element: &Element, known: &Known) {
        let input = |need: &crate::program::Need| {
            let value = known.get(&need.target).filter(|_| !need.knowledge)?;
            Some((
                self.program.elements.get(need.target)?.variable.clone(),
                value.clone(),
            ))
        };
        let mut log = self.log();
        let step = Step {
            decision_id: element.id.clone(),
            decision_name: element.name.clone(),
            inputs: element.needs.iter().filter_map(input).collect(),
            tables: Vec::new(),
            problems: std::mem::take(&mut log.pending),
            value: Value::Null,
        };
        log.open.push(step);
    }

    fn end(&self, value: Value) {
        let mut log = self.log();
        let Some(mut step) = log.open.pop() else {
            return;
        };
        // The outermost decision is always told; of what it calls in a loop only the beginning.
        log.entries += 1;
        if log.entries < MAX_TRAIL || log.open.is_empty() {
            step.value = value;
            log.done.push(step);
        }
    }

    pub(crate) fn hit(&self, table: Table) {
        let mut log = self.log();
        log.entries += 1;
        if log.entries < MAX_TRAIL
            && let Some(step) = log.open.last_mut()
        {
            step.tables.push(table);
        }
    }

    pub(crate) fn problem(&self, place: &Place, message: String) {
        let mut log = self.log();
        log.entries += 1;
        if log.entries >= MAX_TRAIL {
            return;
        }
        let problem = Problem {
            message,
            resource: place.resource.clone(),
            line: place.line,
            column: place.column,
            element_id: place.id.clone(),
        };
        match log.open.last_mut() {
            Some(step) => step.problems.push(problem),
            None => log.pending.push(problem),
        }
    }

    /// Notes why the evaluation ends. The first reason is the one.
    pub(crate) fn fail(
        &self,
        code: DecisionCode,
        message: impl Into<String>,
        place: &Place,
        inputs: Option<Vec<(Arc<str>, String)>>,
        rules: Vec<RuleOutcome>,
    ) -> EvaluationError {
        let message = message.into();
        let mut log = self.log();
        if log.failure.is_none() {
            let step = log.open.last();
            let of_step = || {
                let inputs = step.map(|step| step.inputs.as_slice()).unwrap_or_default();
                inputs
                    .iter()
                    .take(MAX_INPUTS_SHOWN)
                    .map(|(name, value)| (name.clone(), brief(value)))
                    .collect()
            };
            log.failure = Some(Box::new(DecisionError {
                code,
                message: message.clone(),
                decision_id: step.map(|step| step.decision_id.clone()),
                decision_name: step.map(|step| step.decision_name.clone()),
                inputs: inputs.unwrap_or_else(of_step),
                rules,
                resource: place.resource.clone(),
                line: place.line,
                column: place.column,
                element_id: place.id.clone(),
            }));
        }
        let code = if let DecisionCode::Expression(code) = code {
            code
        } else {
            EvaluationCode::Function
        };
        EvaluationError::new(code, message)
    }

    /// An expression failed, at a place in its text.
    pub(crate) fn failed(&self, place: &Place, error: EvaluationError) -> EvaluationError {
        let mut place = place.clone();
        (place.line, place.column) = within(&place, error.line, error.column);
        self.fail(
            DecisionCode::Expression(error.code),
            error.message.clone(),
            &place,
            None,
            Vec::new(),
        );
        error
    }

    pub(crate) fn broken(&self, place: &Place) -> EvaluationError {
        let message = "this was refused when the model was read: see its diagnostics";
        self.fail(DecisionCode::Broken, message, place, None, Vec::new())
    }
}

/// A value as a short text. Writing stops at the limit: the value may be large.
pub(crate) fn brief(value: &Value) -> String {
    struct Bounded(String);
    impl Write for Bounded {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            let room = MAX_VALUE_SHOWN.saturating_sub(self.0.len());
            let mut end = room.min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            self.0.push_str(text.get(..end).unwrap_or_default());
            if end == text.len() {
                Ok(())
            } else {
                Err(std::fmt::Error)
            }
        }
    }
    let mut out = Bounded(String::new());
    if let Some(text) = value.as_str().filter(|text| text.len() > MAX_VALUE_SHOWN) {
        let start: String = text.chars().take(MAX_VALUE_SHOWN).collect();
        return format!("\"{start}...\" ({} bytes)", text.len());
    }
    if write!(out, "{value}").is_err() {
        out.0.push_str("...");
    }
    out.0
}
