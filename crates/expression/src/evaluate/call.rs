//! Functions: built-in ones and closures, called by position or by name.

use std::fmt::Debug;
use std::sync::Arc;

use crate::error::{EvaluationError, Failure};
use crate::evaluate::{Frame, Machine, Outcome};
use crate::expression::Code;
use crate::functions::{self, BuiltIn};
use crate::meter::{Meter, shallow};
use crate::tree::{Node, NodeId, Parameter};
use crate::types::Type;
use crate::value::Value;

/// A function value.
#[derive(Debug)]
pub struct Function(Kind);

#[derive(Debug)]
enum Kind {
    BuiltIn(&'static BuiltIn),
    Closure(Closure),
    Host { callable: Arc<dyn Callable>, depth: u32 },
}

/// A function that the program around the evaluator gives to expressions.
pub trait Callable: Debug + Send + Sync {
    /// The names of the parameters, in order.
    fn parameters(&self) -> &[Arc<str>];

    /// Runs with one argument for each parameter, within what the evaluation that calls it has left.
    ///
    /// # Errors
    ///
    /// What ends the whole evaluation; a call that has no result gives null.
    fn call(&self, arguments: Vec<Value>, meter: &mut Meter) -> Result<Value, EvaluationError>;
}

/// What one call of a host's function counts as nesting, for its share of the stack.
const HOST_LEVELS: u32 = 4;

/// A function of an expression, with what was in sight where it was written.
#[derive(Debug)]
struct Closure {
    code: Arc<Code>,
    parameters: Arc<[Parameter]>,
    body: NodeId,
    captured: Vec<Frame>,
    depth: u32,
}

impl Function {
    pub(crate) fn built_in(built_in: &'static BuiltIn) -> Function {
        Function(Kind::BuiltIn(built_in))
    }

    pub(crate) fn host(callable: Arc<dyn Callable>, depth: u32) -> Function {
        Function(Kind::Host { callable, depth })
    }

    pub(crate) fn depth(&self) -> u32 {
        match &self.0 {
            Kind::BuiltIn(_) => 0,
            Kind::Closure(closure) => closure.depth,
            Kind::Host { depth, .. } => *depth,
        }
    }

    pub(crate) fn same(&self, other: &Function) -> bool {
        match (&self.0, &other.0) {
            (Kind::BuiltIn(a), Kind::BuiltIn(b)) => a.name == b.name,
            (Kind::Closure(a), Kind::Closure(b)) => std::ptr::eq(a, b),
            _ => false,
        }
    }

    /// Whether it can stand where a function of this type is wanted.
    pub(crate) fn conforms(&self, parameters: &[Type], result: &Type) -> bool {
        let any = parameters.is_empty() && *result == Type::Any;
        match &self.0 {
            Kind::BuiltIn(_) => any,
            Kind::Host { callable, .. } => any || parameters.len() == callable.parameters().len(),
            Kind::Closure(closure) => {
                let conforms =
                    |(wanted, own): (&Type, &Parameter)| own.kind == Type::Any || own.kind == *wanted;
                any || (parameters.len() == closure.parameters.len()
                    && parameters.iter().zip(closure.parameters.iter()).all(conforms))
            }
        }
    }

    /// The number of parameters, if it is not built in.
    pub(crate) fn arity(&self) -> Option<usize> {
        match &self.0 {
            Kind::BuiltIn(_) => None,
            Kind::Closure(closure) => Some(closure.parameters.len()),
            Kind::Host { callable, .. } => Some(callable.parameters().len()),
        }
    }
}

impl Machine<'_> {
    pub(super) fn closure(
        &mut self,
        code: &Arc<Code>,
        parameters: &Arc<[Parameter]>,
        body: NodeId,
        free: &[Arc<str>],
    ) -> Outcome {
        let count = self.frames.len() + free.len();
        self.step(count as u64)?;
        self.charge(count.saturating_mul(size_of::<Frame>()))?;
        // Variables too: the function may outlive this evaluation and be called in another.
        let variable = |name: &Arc<str>| {
            self.scope
                .lookup(name)
                .map(|value| Frame::Binding(name.clone(), value))
        };
        let mut captured: Vec<Frame> = free.iter().filter_map(variable).collect();
        captured.extend(self.frames.iter().cloned());
        let depth_of = |frame: &Frame| match frame {
            Frame::Binding(_, value) | Frame::Item(value) => value.depth(),
        };
        let depth = captured.iter().map(depth_of).max().unwrap_or(0) + 1;
        let closure = Closure {
            code: code.clone(),
            parameters: parameters.clone(),
            body,
            captured,
            depth,
        };
        shallow(Value::Function(Arc::new(Function(Kind::Closure(closure)))))
    }

    pub(super) fn call_node(
        &mut self,
        code: &Arc<Code>,
        callee: NodeId,
        arguments: &[NodeId],
        names: Option<&[Arc<str>]>,
    ) -> Outcome {
        let (name, callee) = match &code.tree.node(callee).0 {
            Node::Name { name, .. } => (Some(name), self.callee_named(name)),
            _ => (None, Callee::of(self.evaluate(code, callee)?)),
        };
        let arguments = arguments
            .iter()
            .map(|argument| self.evaluate(code, *argument))
            .collect::<Outcome<Vec<_>>>()?;
        let arguments = match names {
            None => arguments,
            Some(names) => match callee.arrange(arguments, names) {
                Some(arguments) => arguments,
                None => return Ok(Value::Null),
            },
        };
        match callee {
            Callee::None => Ok(Value::Null),
            Callee::BuiltIn(built_in) => built_in.call(self, &arguments),
            Callee::Function(function) => self.call_as(name, &function, arguments),
        }
    }

    /// A variable of the same name does not hide a built-in function, unless it holds a function and is local.
    fn callee_named(&self, name: &str) -> Callee {
        if let Some(Value::Function(function)) = self.local(name) {
            return Callee::Function(function);
        }
        match functions::find(name) {
            Some(built_in) => Callee::BuiltIn(built_in),
            None => self.scope.lookup(name).map_or(Callee::None, Callee::of),
        }
    }

    /// Calls a function by position.
    pub(crate) fn call(&mut self, function: &Arc<Function>, arguments: Vec<Value>) -> Outcome {
        self.call_as(None, function, arguments)
    }

    /// A function called by its name can call itself by it.
    fn call_as(
        &mut self,
        name: Option<&Arc<str>>,
        function: &Arc<Function>,
        arguments: Vec<Value>,
    ) -> Outcome {
        let closure = match &function.0 {
            Kind::BuiltIn(built_in) => return built_in.call(self, &arguments),
            Kind::Host { callable, .. } => return self.call_host(callable, arguments),
            Kind::Closure(closure) => closure,
        };
        if arguments.len() != closure.parameters.len() {
            return Ok(Value::Null);
        }
        self.step(closure.captured.len() as u64 / 4)?;
        let mut frames = closure.captured.clone();
        if let Some(name) = name {
            frames.push(Frame::Binding(name.clone(), Value::Function(function.clone())));
        }
        for (parameter, argument) in closure.parameters.iter().zip(arguments) {
            let Some(argument) = parameter.kind.coerce(argument) else {
                return Ok(Value::Null);
            };
            frames.push(Frame::Binding(parameter.name.clone(), argument));
        }
        let outer = std::mem::replace(&mut self.frames, frames);
        let result = self.evaluate(&closure.code, closure.body);
        self.frames = outer;
        result
    }

    fn call_host(&mut self, callable: &Arc<dyn Callable>, arguments: Vec<Value>) -> Outcome {
        if arguments.len() != callable.parameters().len() {
            return Ok(Value::Null);
        }
        let result = match self.meter.descend(HOST_LEVELS) {
            Ok(()) => callable
                .call(arguments, self.meter)
                .map_err(|error| Failure::new(error.code, error.message)),
            Err(failure) => Err(failure),
        };
        self.meter.ascend(HOST_LEVELS);
        result
    }

    /// Calls a function by the names of its parameters; null where they do not fit.
    pub(crate) fn call_named(&mut self, function: Value, arguments: Vec<(Arc<str>, Value)>) -> Outcome {
        let callee = Callee::of(function);
        let (names, values): (Vec<_>, Vec<_>) = arguments.into_iter().unzip();
        let arguments = match callee.arrange(values, &names) {
            Some(arguments) => arguments,
            None => return Ok(Value::Null),
        };
        match callee {
            Callee::None => Ok(Value::Null),
            Callee::BuiltIn(built_in) => built_in.call(self, &arguments),
            Callee::Function(function) => self.call_as(None, &function, arguments),
        }
    }
}

/// What a call calls.
enum Callee {
    BuiltIn(&'static BuiltIn),
    Function(Arc<Function>),
    None,
}

impl Callee {
    fn of(value: Value) -> Callee {
        if let Value::Function(function) = value {
            Callee::Function(function)
        } else {
            Callee::None
        }
    }

    /// Brings named arguments into the order of the parameters.
    fn arrange(&self, arguments: Vec<Value>, names: &[Arc<str>]) -> Option<Vec<Value>> {
        let mut pairs: Vec<(&str, Value)> = names.iter().map(|name| &**name).zip(arguments).collect();
        let count = pairs.len();
        pairs.sort_by_key(|(name, _)| *name);
        pairs.dedup_by_key(|(name, _)| *name);
        if pairs.len() != count {
            return None;
        }
        let wanted: Vec<&Arc<str>> = match self {
            Callee::None => return None,
            Callee::BuiltIn(built_in) => return built_in.arrange(pairs),
            Callee::Function(function) => match &function.0 {
                Kind::BuiltIn(built_in) => return built_in.arrange(pairs),
                Kind::Closure(closure) => closure
                    .parameters
                    .iter()
                    .map(|parameter| &parameter.name)
                    .collect(),
                Kind::Host { callable, .. } => callable.parameters().iter().collect(),
            },
        };
        if count != wanted.len() {
            return None;
        }
        let value = |wanted: &Arc<str>| {
            let at = pairs.binary_search_by_key(&&**wanted, |(name, _)| *name).ok()?;
            pairs.get(at).map(|(_, value)| value.clone())
        };
        wanted.into_iter().map(value).collect()
    }
}
