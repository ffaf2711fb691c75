//! What an evaluation gets from outside: the variables and the time.

use crate::context::Context;
use crate::value::Value;

/// The language of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// FEEL of DMN 1.3 and later.
    Feel,
    /// The subset of the unified expression language.
    Unified,
}

/// The variables and the clock of an evaluation.
pub trait Scope {
    /// The value of a variable; `None` if there is none of that name.
    fn lookup(&self, name: &str) -> Option<Value>;

    /// Milliseconds since 1970 for `now()` and `today()`; the default is 0.
    fn now_ms(&self) -> i64 {
        0
    }

    /// Visits the names of the variables, for the messages of errors; the default visits none.
    fn names(&self, visit: &mut dyn FnMut(&str)) {
        let _ = visit;
    }
}

/// A scope without variables.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoScope;

impl Scope for NoScope {
    fn lookup(&self, _: &str) -> Option<Value> {
        None
    }
}

impl Scope for Context {
    fn lookup(&self, name: &str) -> Option<Value> {
        self.get(name).cloned()
    }

    fn names(&self, visit: &mut dyn FnMut(&str)) {
        self.iter().for_each(|(name, _)| visit(name));
    }
}
