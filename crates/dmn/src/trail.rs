//! What an evaluation did: the decisions in the order in which they were made, the rules that matched, the doubts.

use std::sync::Arc;

use tidegate_expression::Value;

/// The result of a decision and how it came about.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// The result; null where DMN has none.
    pub value: Value,
    /// The decisions that were made for it, each after those that it needs; the one asked for is the last.
    pub trail: Vec<Step>,
}

/// One decision that was made.
#[derive(Clone, Debug)]
pub struct Step {
    /// Id of the decision.
    pub decision_id: Arc<str>,
    /// Name of the decision.
    pub decision_name: Arc<str>,
    /// Names and values of the inputs and decisions that it required.
    pub inputs: Vec<(Arc<str>, Value)>,
    /// The decision tables that were evaluated for it, those in functions included.
    pub tables: Vec<Table>,
    /// What went wrong without ending the evaluation, such as a value that is not of its type and so became null.
    pub problems: Vec<Problem>,
    /// The result.
    pub value: Value,
}

/// One evaluation of a decision table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Id of the table.
    pub id: Option<Arc<str>>,
    /// The values of its inputs.
    pub inputs: Vec<Value>,
    /// The rules that matched, in the table's order.
    pub rules: Vec<Rule>,
}

/// A rule that matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Number of the rule, from 1.
    pub number: usize,
    /// The rule's id.
    pub id: Option<Arc<str>>,
}

/// Something that went wrong without ending the evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What happened.
    pub message: String,
    /// Name of the file.
    pub resource: Arc<str>,
    /// Line in the file, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Id of the element concerned.
    pub element_id: Option<Arc<str>>,
}
