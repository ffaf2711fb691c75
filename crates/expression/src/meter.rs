//! What an evaluation has used of its limits. Several evaluations that share a meter share the limits.

use std::sync::Arc;

use crate::error::{EvaluationCode, EvaluationError, Failure};
use crate::evaluate::{Callable, Function, Machine, Outcome};
use crate::limits::{Limits, MAX_VALUE_DEPTH, TOTAL_SIZE_FACTOR};
use crate::scope::Scope;
use crate::value::Value;

/// Counts what one evaluation, or a group of evaluations that belong together, uses of its [`Limits`].
#[derive(Debug)]
pub struct Meter {
    limits: Limits,
    steps: u64,
    depth: u32,
    built: usize,
}

impl Meter {
    /// A meter that has counted nothing yet.
    pub fn new(limits: &Limits) -> Meter {
        Meter {
            limits: *limits,
            steps: 0,
            depth: 0,
            built: 0,
        }
    }

    /// The steps counted so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Counts steps of work that a host does for an evaluation.
    ///
    /// # Errors
    ///
    /// The limit of steps is reached.
    pub fn step(&mut self, count: u64) -> Result<(), EvaluationError> {
        self.count(count).map_err(EvaluationError::from)
    }

    /// Runs something that nests so many levels deeper.
    ///
    /// # Errors
    ///
    /// The limit of depth is reached, or what ran failed.
    pub fn nested<T, E: From<EvaluationError>>(
        &mut self,
        levels: u32,
        inner: impl FnOnce(&mut Meter) -> Result<T, E>,
    ) -> Result<T, E> {
        let result = match self.descend(levels) {
            Ok(()) => inner(self),
            Err(failure) => Err(EvaluationError::from(failure).into()),
        };
        self.ascend(levels);
        result
    }

    /// Counts steps for going through a whole value.
    ///
    /// # Errors
    ///
    /// The limit of steps is reached.
    pub fn weigh(&mut self, value: &Value) -> Result<(), EvaluationError> {
        self.go_through(value).map_err(EvaluationError::from)
    }

    /// Builds a list.
    ///
    /// # Errors
    ///
    /// A limit is reached.
    pub fn list(&mut self, items: Vec<Value>) -> Result<Value, EvaluationError> {
        self.build_list(items).map_err(EvaluationError::from)
    }

    /// Builds a context; of entries with the same name, the last counts.
    ///
    /// # Errors
    ///
    /// A limit is reached.
    pub fn context(&mut self, entries: Vec<(Arc<str>, Value)>) -> Result<Value, EvaluationError> {
        self.build_context(entries).map_err(EvaluationError::from)
    }

    /// Makes a function value of a host's function, which holds the values given.
    ///
    /// # Errors
    ///
    /// A limit is reached.
    pub fn function<'v>(
        &mut self,
        callable: Arc<dyn Callable>,
        held: impl IntoIterator<Item = &'v Value>,
    ) -> Result<Value, EvaluationError> {
        let (mut depth, mut count) = (0, 0);
        for value in held {
            depth = depth.max(value.depth());
            count += 1;
        }
        let charged = self
            .count(count as u64)
            .and_then(|()| self.charge(size_of::<Value>().saturating_mul(count * 2)));
        charged
            .and_then(|()| shallow(Value::Function(Arc::new(Function::host(callable, depth + 1)))))
            .map_err(EvaluationError::from)
    }

    /// Calls a function value by the names of its parameters; null where they do not fit or it is no function.
    ///
    /// # Errors
    ///
    /// As [`crate::Expression::evaluate`].
    pub fn call(
        &mut self,
        function: Value,
        arguments: Vec<(Arc<str>, Value)>,
        scope: &dyn Scope,
    ) -> Result<Value, EvaluationError> {
        let mut machine = Machine::new(scope, self);
        machine
            .call_named(function, arguments)
            .map_err(EvaluationError::from)
    }

    pub(crate) fn count(&mut self, count: u64) -> Outcome<()> {
        self.steps = self.steps.saturating_add(count);
        if self.steps <= self.limits.steps {
            return Ok(());
        }
        let message = format!("the evaluation took more than {} steps", self.limits.steps);
        Err(Failure::new(EvaluationCode::StepLimit, message))
    }

    /// Goes deeper; [`Meter::ascend`] comes back, also after an error.
    pub(crate) fn descend(&mut self, levels: u32) -> Outcome<()> {
        self.depth = self.depth.saturating_add(levels);
        if self.depth <= self.limits.depth {
            return Ok(());
        }
        let message = format!("the evaluation nests deeper than {} levels", self.limits.depth);
        Err(Failure::new(EvaluationCode::DepthLimit, message))
    }

    pub(crate) fn ascend(&mut self, levels: u32) {
        self.depth = self.depth.saturating_sub(levels);
    }

    pub(crate) fn room(&self, bytes: usize) -> Outcome<()> {
        let total = self.limits.size.saturating_mul(TOTAL_SIZE_FACTOR);
        if bytes <= self.limits.size && self.built.saturating_add(bytes) <= total {
            return Ok(());
        }
        let message = format!(
            "a value grows beyond {} bytes, or all values together beyond {total}",
            self.limits.size
        );
        Err(Failure::new(EvaluationCode::SizeLimit, message))
    }

    pub(crate) fn charge(&mut self, bytes: usize) -> Outcome<()> {
        self.room(bytes)?;
        self.built += bytes;
        Ok(())
    }

    pub(crate) fn build_list(&mut self, items: Vec<Value>) -> Outcome {
        self.count(items.len() as u64 / 8)?;
        self.charge(items.len().saturating_mul(size_of::<Value>()))?;
        shallow(Value::list(items))
    }

    pub(crate) fn build_context(&mut self, entries: Vec<(Arc<str>, Value)>) -> Outcome {
        self.count(entries.len() as u64 / 4)?;
        self.charge(entries.len().saturating_mul(size_of::<Value>() * 2))?;
        shallow(Value::context(entries))
    }

    pub(crate) fn go_through(&mut self, value: &Value) -> Outcome<()> {
        match value {
            Value::List(list) => {
                self.count(list.len() as u64)?;
                list.iter().try_for_each(|item| self.go_through(item))
            }
            Value::Context(context) => {
                self.count(context.len() as u64)?;
                context.iter().try_for_each(|(_, item)| self.go_through(item))
            }
            Value::String(text) => self.count(text.len() as u64 / 256),
            _ => Ok(()),
        }
    }
}

/// Refuses a value that nests too deep.
pub(crate) fn shallow(value: Value) -> Outcome {
    if value.depth() <= MAX_VALUE_DEPTH {
        return Ok(value);
    }
    let message = format!("a value nests deeper than {MAX_VALUE_DEPTH} levels");
    Err(Failure::new(EvaluationCode::DepthLimit, message))
}
