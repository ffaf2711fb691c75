//! Decision tables.

use roxmltree::Node;
use tidegate_expression::Expression;
use tidegate_model::diagnostic::Diagnostic;

use crate::hit_policy::{Aggregation, HitPolicy};
use crate::parse::Compiler;
use crate::parse::model::name;
use crate::parse::xml::Read;
use crate::program::{Body, Code, Input, Output, Table, TableRule, Tests, Text};
use crate::types::Type;

impl<'a, 'i: 'a> Compiler<'a, 'i> {
    pub(super) fn table(&mut self, node: Node<'a, 'i>) -> Body {
        let policy = self.hit_policy(node);
        let columns: Vec<Node<'a, 'i>> = node.named("input").collect();
        let inputs: Vec<Input> = columns.into_iter().map(|column| self.input(column)).collect();
        let columns: Vec<Node<'a, 'i>> = node.named("output").collect();
        let count = columns.len();
        let mut outputs: Vec<Output> = Vec::with_capacity(count);
        for column in columns {
            let output = self.output(column, count > 1);
            if count > 1 && outputs.iter().any(|other| other.name == output.name) {
                let message = format!("the table has two outputs with the name \"{}\"", output.name);
                self.complain(
                    Diagnostic::error("duplicate-output", message).hint("rename one of them"),
                    column,
                );
            }
            outputs.push(output);
        }
        let nodes: Vec<Node<'a, 'i>> = node.named("rule").collect();
        let rules: Vec<TableRule> = nodes
            .into_iter()
            .map(|rule| self.rule(rule, inputs.len(), outputs.len()))
            .collect();
        let whole = rules
            .iter()
            .all(|rule| rule.tests.len() == inputs.len() && rule.results.len() == outputs.len());
        if outputs.is_empty() {
            let finding = Diagnostic::error("no-output", "the decision table has no output");
            self.complain(finding.hint("add an <output>"), node);
            return Body::Broken;
        }
        let Some(policy) = policy.filter(|_| whole) else {
            return Body::Broken;
        };
        if matches!(policy, HitPolicy::Collect(Some(_))) && outputs.len() > 1 {
            let finding = Diagnostic::error(
                "aggregation-of-several",
                "a table that aggregates has one output only",
            );
            self.complain(finding.hint("remove the aggregation or the other outputs"), node);
            return Body::Broken;
        }
        if matches!(policy, HitPolicy::Priority | HitPolicy::OutputOrder)
            && outputs.iter().all(|output| output.priorities.is_none())
        {
            let message = "the hit policy orders by output values, and no output has any";
            let hint = "add <outputValues> to an output, highest priority first";
            self.complain(Diagnostic::error("no-priorities", message).hint(hint), node);
        }
        Body::Table(Box::new(Table {
            policy,
            inputs,
            outputs,
            rules,
        }))
    }

    fn hit_policy(&mut self, node: Node<'a, 'i>) -> Option<HitPolicy> {
        let policy = node.value("hitPolicy").unwrap_or("UNIQUE");
        let aggregation = match node.value("aggregation") {
            None => None,
            Some(written) => match Aggregation::named(written) {
                Some(aggregation) => Some(aggregation),
                None => {
                    let message = format!("the aggregation \"{written}\" is not known");
                    let finding = Diagnostic::error("unknown-aggregation", message);
                    self.complain(finding.hint("use SUM, MIN, MAX or COUNT"), node);
                    return None;
                }
            },
        };
        let found = HitPolicy::named(policy, aggregation);
        if found.is_none() {
            let finding = Diagnostic::error(
                "unknown-hit-policy",
                format!("the hit policy \"{policy}\" is not known"),
            );
            let hint = "use UNIQUE, ANY, FIRST, PRIORITY, RULE ORDER, OUTPUT ORDER or COLLECT";
            self.complain(finding.hint(hint), node);
        }
        found
    }

    fn input(&mut self, node: Node<'a, 'i>) -> Input {
        let Some(expression) = node.kid("inputExpression") else {
            let finding = Diagnostic::error("missing-expression", "the input has no expression");
            self.complain(
                finding.hint("add <inputExpression><text>...</text></inputExpression>"),
                node,
            );
            let text = Text {
                place: self.place(node),
                code: Code::Broken,
            };
            return Input {
                label: "".into(),
                text,
                kind: Type::Any,
                allowed: None,
            };
        };
        let (source, _) = self.source(expression);
        let text = self.text(expression);
        if matches!(text.code, Code::Empty) {
            let finding = Diagnostic::error("missing-expression", "the input has no expression");
            self.complain(
                finding.hint("write what the column tests, such as the name of an input"),
                node,
            );
        }
        let label = node.value("label").map_or_else(|| name(source.trim()), name);
        let kind = self.type_of(expression);
        let allowed = self.allowed(node, "inputValues");
        Input {
            label,
            text,
            kind,
            allowed,
        }
    }

    fn output(&mut self, node: Node<'a, 'i>, named: bool) -> Output {
        let label = node.value("name").or_else(|| node.value("label")).map(name);
        if named && label.is_none() {
            let finding = Diagnostic::error("missing-name", "an output of a table with several has no name");
            self.complain(finding.hint("give each output a name"), node);
        }
        let default = node.kid("defaultOutputEntry").map(|entry| self.text(entry));
        Output {
            name: label.unwrap_or_else(|| "".into()),
            kind: self.type_of(node),
            allowed: self.allowed(node, "outputValues"),
            priorities: self.priorities(node),
            default: default.filter(|text| !matches!(text.code, Code::Empty)),
        }
    }

    fn allowed(&mut self, node: Node<'a, 'i>, values: &str) -> Option<Tests> {
        node.kid(values).map(|values| self.tests(values))
    }

    /// The output values as a list. What is wrong in them has been said already.
    fn priorities(&mut self, node: Node<'a, 'i>) -> Option<Expression> {
        let (source, _) = self.source(node.kid("outputValues")?);
        let names = self.names.of(&source);
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        Expression::feel_with_names(&format!("[{source}\n]"), &names).ok()
    }

    fn rule(&mut self, node: Node<'a, 'i>, inputs: usize, outputs: usize) -> TableRule {
        let entries: Vec<Node<'a, 'i>> = node.named("inputEntry").collect();
        let results: Vec<Node<'a, 'i>> = node.named("outputEntry").collect();
        if entries.len() != inputs || results.len() != outputs {
            let message = format!(
                "the rule has {} input and {} output entries in a table of {inputs} inputs and {outputs} outputs",
                entries.len(),
                results.len()
            );
            let hint = "give each column one entry; - matches everything";
            self.complain(Diagnostic::error("rule-length", message).hint(hint), node);
        }
        TableRule {
            id: node.value("id").map(Into::into),
            tests: entries.into_iter().map(|entry| self.tests(entry)).collect(),
            results: results.into_iter().map(|entry| self.text(entry)).collect(),
        }
    }
}
