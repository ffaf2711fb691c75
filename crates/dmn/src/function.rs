//! Functions that FEEL calls: business knowledge, decision services and boxed functions.

use std::sync::Arc;

use tidegate_expression::{Callable, EvaluationError, Meter, Value};

use crate::evaluate::{Known, Outcome, Session};
use crate::program::{Definition, Kind, Place};
use crate::scope::Sight;
use crate::types::Type;

/// Business knowledge. What it requires comes into sight when it is called, so that it may require itself.
#[derive(Debug)]
pub(crate) struct Knowledge {
    pub session: Arc<Session>,
    pub number: usize,
    pub definition: Arc<Definition>,
}

impl Callable for Knowledge {
    fn parameters(&self) -> &[Arc<str>] {
        &self.definition.parameters
    }

    fn call(&self, arguments: Vec<Value>, meter: &mut Meter) -> Result<Value, EvaluationError> {
        let Some(element) = self.session.program.elements.get(self.number) else {
            return Ok(Value::Null);
        };
        if element.broken {
            return Err(self.session.broken(&element.place));
        }
        let sight = self.session.sight(element, &Known::new(), None, meter)?;
        let value = self.session.apply(&self.definition, sight, arguments, meter)?;
        // Some editions give the variable the type of the function, others that of its result.
        if element.result == Type::Function || self.session.program.types.is_function(element.result) {
            return Ok(value);
        }
        self.session
            .conform(element.result, value, &element.place, &element.name, meter)
    }
}

/// A decision service.
#[derive(Debug)]
pub(crate) struct ServiceFunction {
    pub session: Arc<Session>,
    pub number: usize,
    pub parameters: Arc<[Arc<str>]>,
}

/// As with other functions, an argument that is not of its type gives null, without a call.
impl Callable for ServiceFunction {
    fn parameters(&self) -> &[Arc<str>] {
        &self.parameters
    }

    fn call(&self, mut arguments: Vec<Value>, meter: &mut Meter) -> Result<Value, EvaluationError> {
        let program = &self.session.program;
        let Some(Kind::Service(service)) = program.elements.get(self.number).map(|element| &element.kind)
        else {
            return Ok(Value::Null);
        };
        for (input, argument) in service.inputs.iter().zip(&mut arguments) {
            let Some(element) = program.elements.get(*input) else {
                continue;
            };
            match program
                .types
                .coerce(element.result, std::mem::replace(argument, Value::Null), meter)?
            {
                Some(value) => *argument = value,
                None => {
                    self.session
                        .mismatch(&element.variable, element.result, &element.place);
                    return Ok(Value::Null);
                }
            }
        }
        self.session.service(self.number, arguments, meter)
    }
}

/// A boxed function, with what was in sight where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Closure {
    pub session: Arc<Session>,
    pub definition: Arc<Definition>,
    pub sight: Sight,
    /// The name by which it can call itself.
    pub name: Option<Arc<str>>,
}

impl Callable for Closure {
    fn parameters(&self) -> &[Arc<str>] {
        &self.definition.parameters
    }

    fn call(&self, arguments: Vec<Value>, meter: &mut Meter) -> Result<Value, EvaluationError> {
        let mut sight = self.sight.clone();
        meter.step(sight.frames.len() as u64 / 4)?;
        if let Some(name) = &self.name {
            let itself = self.value(meter)?;
            sight.bind(name, itself);
        }
        self.session.apply(&self.definition, sight, arguments, meter)
    }
}

impl Closure {
    pub(crate) fn value(&self, meter: &mut Meter) -> Outcome {
        let root = self.sight.root.iter().map(|(_, value)| value);
        let held = self.sight.frames.iter().map(|frame| frame.value()).chain(root);
        meter.function(Arc::new(self.clone()), held)
    }
}

impl Session {
    /// Runs a function. An argument that is not of its parameter's type gives null, without a call.
    fn apply(
        self: &Arc<Self>,
        definition: &Definition,
        mut sight: Sight,
        arguments: Vec<Value>,
        meter: &mut Meter,
    ) -> Outcome {
        let parameters = definition.parameters.iter().zip(&definition.kinds);
        for ((name, kind), argument) in parameters.zip(arguments) {
            match self.program.types.coerce(*kind, argument, meter)? {
                Some(argument) => sight.bind(name, argument),
                None => {
                    self.mismatch(name, *kind, &definition.place);
                    return Ok(Value::Null);
                }
            }
        }
        match &definition.body {
            Some(body) => self.boxed(body, &mut sight, meter),
            None => {
                if definition.external {
                    let message = "a function of another language is never called: the result is null";
                    self.problem(&definition.place, message.to_owned());
                }
                Ok(Value::Null)
            }
        }
    }

    fn mismatch(&self, parameter: &str, kind: Type, place: &Place) {
        let kind = self.program.types.name(kind);
        self.problem(
            place,
            format!("the argument \"{parameter}\" is not of the type {kind}: the result is null"),
        );
    }
}
