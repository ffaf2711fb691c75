//! A model as it is evaluated: elements that point to each other by number, expressions prepared, types resolved.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_expression::{Expression, UnaryTests};

use crate::hit_policy::HitPolicy;
use crate::types::{Type, Types};

/// Where something stands.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub resource: Arc<str>,
    pub line: u32,
    pub column: u32,
    pub id: Option<Arc<str>>,
}

/// All models that were read together.
#[derive(Debug)]
pub(crate) struct Program {
    pub elements: Vec<Element>,
    pub types: Types,
    /// Elements by id and by name; those of an earlier file win.
    pub by_id: HashMap<Arc<str>, usize>,
    pub by_name: HashMap<Arc<str>, usize>,
    pub services: HashMap<Arc<str>, usize>,
}

#[derive(Debug)]
pub(crate) struct Element {
    pub id: Arc<str>,
    pub name: Arc<str>,
    /// The name by which others read it.
    pub variable: Arc<str>,
    pub kind: Kind,
    pub result: Type,
    pub needs: Vec<Need>,
    /// Names that a decision reads although it does not require them: variables, in models of the Java engines.
    pub undeclared: Vec<Arc<str>>,
    /// The number of the file.
    pub model: usize,
    pub place: Place,
    /// It must not be evaluated; why is a diagnostic.
    pub broken: bool,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Input,
    Decision(Option<Boxed>),
    Knowledge(Option<Arc<Definition>>),
    Service(Service),
}

#[derive(Debug)]
pub(crate) struct Service {
    /// Input data, then input decisions.
    pub inputs: Vec<usize>,
    pub parameters: Arc<[Arc<str>]>,
    pub outputs: Vec<usize>,
}

/// Something that an element reads.
#[derive(Debug)]
pub(crate) struct Need {
    pub target: usize,
    /// The name of the import through which it is reached.
    pub import: Option<Arc<str>>,
    /// A function and no value.
    pub knowledge: bool,
}

/// A FEEL text with its place in the file.
#[derive(Debug)]
pub(crate) struct Text {
    pub place: Place,
    pub code: Code,
}

#[derive(Debug)]
pub(crate) enum Code {
    Feel(Expression),
    Empty,
    /// It was refused; why is a diagnostic.
    Broken,
}

/// Unary tests with their place in the file.
#[derive(Debug)]
pub(crate) struct Tests {
    pub place: Place,
    pub code: TestCode,
}

#[derive(Debug)]
pub(crate) enum TestCode {
    Tests(UnaryTests),
    /// Everything passes.
    Any,
    Broken,
}

/// A boxed expression.
#[derive(Debug)]
pub(crate) struct Boxed {
    pub place: Place,
    pub result: Type,
    pub body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Literal(Text),
    Context(Vec<Entry>),
    List(Vec<Boxed>),
    Relation {
        columns: Vec<Column>,
        rows: Vec<Vec<Boxed>>,
    },
    Function(Arc<Definition>),
    Invocation {
        function: Box<Boxed>,
        bindings: Vec<(Arc<str>, Option<Boxed>)>,
    },
    Conditional {
        condition: Box<Boxed>,
        then: Box<Boxed>,
        otherwise: Box<Boxed>,
    },
    Filter {
        domain: Box<Boxed>,
        test: Box<Boxed>,
    },
    /// `partial` says that the body may read the results so far.
    For {
        name: Arc<str>,
        domain: Box<Boxed>,
        body: Box<Boxed>,
        partial: bool,
    },
    Quantified {
        some: bool,
        name: Arc<str>,
        domain: Box<Boxed>,
        test: Box<Boxed>,
    },
    Table(Box<Table>),
    /// It was refused, or is missing where one must be.
    Broken,
}

/// An entry of a boxed context; one without a name is the result.
#[derive(Debug)]
pub(crate) struct Entry {
    pub name: Option<Arc<str>>,
    pub kind: Type,
    pub value: Option<Boxed>,
    pub place: Place,
}

#[derive(Debug)]
pub(crate) struct Column {
    pub name: Arc<str>,
    pub kind: Type,
}

/// A boxed function.
#[derive(Debug)]
pub(crate) struct Definition {
    pub parameters: Arc<[Arc<str>]>,
    pub kinds: Vec<Type>,
    pub body: Option<Boxed>,
    /// It is of another language and is never called.
    pub external: bool,
    pub place: Place,
}

#[derive(Debug)]
pub(crate) struct Table {
    pub policy: HitPolicy,
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    pub rules: Vec<TableRule>,
}

#[derive(Debug)]
pub(crate) struct Input {
    pub label: Arc<str>,
    pub text: Text,
    pub kind: Type,
    pub allowed: Option<Tests>,
}

#[derive(Debug)]
pub(crate) struct Output {
    pub name: Arc<str>,
    pub kind: Type,
    pub allowed: Option<Tests>,
    /// The allowed values in order, highest priority first.
    pub priorities: Option<Expression>,
    pub default: Option<Text>,
}

#[derive(Debug)]
pub(crate) struct TableRule {
    pub id: Option<Arc<str>>,
    pub tests: Vec<Tests>,
    pub results: Vec<Text>,
}
