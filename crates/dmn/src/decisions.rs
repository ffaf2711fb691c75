//! The decisions of one or more models, ready to be evaluated.

use std::sync::Arc;

use tidegate_expression::{EvaluationError, Limits, Meter, Scope, Value};

use crate::error::{DecisionCode, DecisionError};
use crate::evaluate::{Known, Outcome, Session};
use crate::program::{Element, Kind, Program};
use crate::trail::Evaluated;

/// The decisions of one or more models, read once. A clone copies a pointer.
#[derive(Clone, Debug)]
pub struct Decisions {
    program: Arc<Program>,
}

/// A decision that can be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<'d> {
    /// Its id.
    pub id: &'d str,
    /// Its name.
    pub name: &'d str,
    /// The file in which it stands.
    pub resource: &'d str,
    /// Line in the file, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// A decision service that can be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service<'d> {
    /// Its id.
    pub id: &'d str,
    /// Its name.
    pub name: &'d str,
    /// The names of its inputs, in the order of its parameters.
    pub inputs: Vec<&'d str>,
    /// The names of its output decisions. With more than one, the result is a context of these.
    pub outputs: Vec<&'d str>,
}

impl Decisions {
    pub(crate) fn new(program: Program) -> Decisions {
        Decisions {
            program: Arc::new(program),
        }
    }

    /// All decisions, in the order of the files.
    pub fn decisions(&self) -> impl Iterator<Item = Decision<'_>> {
        self.program
            .elements
            .iter()
            .filter(|element| matches!(element.kind, Kind::Decision(_)))
            .map(|element| Decision {
                id: &element.id,
                name: &element.name,
                resource: &element.place.resource,
                line: element.place.line,
                column: element.place.column,
            })
    }

    /// All decision services, in the order of the files.
    pub fn services(&self) -> impl Iterator<Item = Service<'_>> {
        self.program.elements.iter().filter_map(|element| {
            let Kind::Service(service) = &element.kind else {
                return None;
            };
            let output = |number: &usize| self.program.elements.get(*number).map(|output| &*output.variable);
            Some(Service {
                id: &element.id,
                name: &element.name,
                inputs: service.parameters.iter().map(|name| &**name).collect(),
                outputs: service.outputs.iter().filter_map(output).collect(),
            })
        })
    }

    /// The names of the input data that a decision requires, directly or through others, each once.
    pub fn inputs_of(&self, decision: &str) -> Vec<&str> {
        let Some(goal) = self.find(decision) else {
            return Vec::new();
        };
        let order = crate::requirement::order(&self.program, &[goal], &Known::new());
        let elements = order
            .into_iter()
            .filter_map(|number| self.program.elements.get(number));
        let mut names: Vec<&str> = elements
            .filter(|element| matches!(element.kind, Kind::Input))
            .map(|element| &*element.variable)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether there is a decision of this id or name.
    pub fn contains(&self, decision: &str) -> bool {
        self.find(decision).is_some()
    }

    /// An id goes before a name.
    fn find(&self, decision: &str) -> Option<usize> {
        let program = &self.program;
        program
            .by_id
            .get(decision)
            .or_else(|| program.by_name.get(decision))
            .copied()
    }

    /// Makes a decision, found by its id or else by its name, and all that it requires, each once. Input data are read
    /// from the variables by their names; one that is missing is null. A name that a decision reads without requiring
    /// it is looked for in the variables too, since models of the Java engines declare no input data. Where the type of an input is a date, a time or
    /// a duration, a text in its ISO form will do. The limits hold for all of it together.
    ///
    /// # Errors
    ///
    /// A decision that is not there or was refused, a table whose hit policy or allowed values are violated, or a limit
    /// that is reached. What FEEL cannot compute is null and no error; the trail tells where a type did not fit.
    pub fn evaluate(
        &self,
        decision: &str,
        variables: &dyn Scope,
        limits: &Limits,
    ) -> Result<Evaluated, Box<DecisionError>> {
        let Some(goal) = self.find(decision) else {
            return Err(unknown(format!(
                "there is no decision with the id or name \"{decision}\""
            )));
        };
        self.run(goal, variables, limits, |session, meter| {
            let known = session.solve(&[goal], Known::new(), Some(variables), meter)?;
            Ok(known.get(&goal).cloned().unwrap_or(Value::Null))
        })
    }

    /// Evaluates a decision service, found by its id or name. Its input data and input decisions are read from the
    /// variables. One output decision gives its value, several give a context.
    ///
    /// # Errors
    ///
    /// As [`Decisions::evaluate`].
    pub fn evaluate_service(
        &self,
        service: &str,
        variables: &dyn Scope,
        limits: &Limits,
    ) -> Result<Evaluated, Box<DecisionError>> {
        let Some(number) = self.program.services.get(service).copied() else {
            return Err(unknown(format!(
                "there is no decision service with the id or name \"{service}\""
            )));
        };
        self.run(number, variables, limits, |session, meter| {
            let parameters = match self.program.elements.get(number).map(|element| &element.kind) {
                Some(Kind::Service(service)) => service.parameters.clone(),
                _ => Arc::default(),
            };
            let argument = |name: &Arc<str>| variables.lookup(name).unwrap_or(Value::Null);
            session.service(number, parameters.iter().map(argument).collect(), meter)
        })
    }

    fn run(
        &self,
        goal: usize,
        variables: &dyn Scope,
        limits: &Limits,
        work: impl FnOnce(&Arc<Session>, &mut Meter) -> Outcome,
    ) -> Result<Evaluated, Box<DecisionError>> {
        let session = Session::new(self.program.clone(), variables.now_ms());
        let result = work(&session, &mut Meter::new(limits));
        let (trail, failure) = session.finish();
        match result {
            Ok(value) => Ok(Evaluated { value, trail }),
            Err(error) => Err(failure.unwrap_or_else(|| between(self.program.elements.get(goal), error))),
        }
    }
}

fn unknown(message: String) -> Box<DecisionError> {
    Box::new(DecisionError {
        code: DecisionCode::UnknownDecision,
        message,
        decision_id: None,
        decision_name: None,
        inputs: Vec::new(),
        rules: Vec::new(),
        resource: "".into(),
        line: 0,
        column: 0,
        element_id: None,
    })
}

/// The error of work that belongs to no expression, such as building the sight of a decision.
fn between(goal: Option<&Element>, error: EvaluationError) -> Box<DecisionError> {
    let mut failure = unknown(error.message);
    failure.code = DecisionCode::Expression(error.code);
    if let Some(goal) = goal {
        failure.decision_id = Some(goal.id.clone());
        failure.decision_name = Some(goal.name.clone());
        failure.resource = goal.place.resource.clone();
        (failure.line, failure.column) = (goal.place.line, goal.place.column);
        failure.element_id = goal.place.id.clone();
    }
    failure
}
