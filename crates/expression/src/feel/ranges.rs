//! What begins with a bracket: lists, ranges in all their forms, parentheses, and the tests behind `in`.

use crate::error::SyntaxError;
use crate::feel::parser::Parser;
use crate::lexer::Kind;
use crate::tree::{Node, NodeId, Test};

impl Parser<'_> {
    /// `[...]`: a list or a range; `]a..b[`: a range.
    pub(super) fn bracket(&mut self, offset: usize) -> Result<NodeId, SyntaxError> {
        let open = self.is("]");
        self.advance();
        if open {
            let start = self.inner()?;
            self.expect("..")?;
            return self.range(start, false, offset);
        }
        if self.take("]") {
            return self.add(Node::List(Box::default()), offset);
        }
        let first = self.inner()?;
        if self.take("..") {
            return self.range(first, true, offset);
        }
        let mut items = vec![first];
        while self.take(",") {
            items.push(self.inner()?);
        }
        self.expect("]")?;
        self.add(Node::List(items.into()), offset)
    }

    /// `(...)`: a parenthesis, a range, or a range of one comparison such as `(< 10)`.
    pub(super) fn parenthesis(&mut self, offset: usize) -> Result<NodeId, SyntaxError> {
        self.advance();
        if let Some(comparison) = self.comparison_operator() {
            let bound = self.inner()?;
            self.expect(")")?;
            return self.add(Node::UnaryRange { comparison, bound }, offset);
        }
        let inner = self.inner()?;
        if self.take("..") {
            return self.range(inner, false, offset);
        }
        self.expect(")")?;
        Ok(inner)
    }

    /// Behind `..`.
    fn range(&mut self, start: NodeId, start_included: bool, offset: usize) -> Result<NodeId, SyntaxError> {
        let outer = std::mem::replace(&mut self.endpoint, true);
        let end = self.expression(0)?;
        self.endpoint = outer;
        let end_included = self.take("]");
        if !end_included && !self.take(")") && !self.take("[") {
            return Err(self.error("the range does not end", "close it with `]` or `)`"));
        }
        self.add(
            Node::Range {
                start,
                end,
                start_included,
                end_included,
            },
            offset,
        )
    }

    /// At a `[` behind the end of a range: whether it closes the range, because no filter could follow.
    pub(super) fn closes_range(&self) -> bool {
        match self.kind_after(1) {
            Kind::Number | Kind::String(_) | Kind::Quoted => false,
            Kind::Symbol("(" | "[" | "{" | "-" | "@") => false,
            Kind::Name => {
                let next = self.rest().get(1).map_or("", |token| self.text_of(token));
                matches!(
                    next,
                    "and" | "or" | "then" | "else" | "return" | "satisfies" | "in" | "between" | "instance"
                )
            }
            _ => true,
        }
    }

    /// The tests behind `in`: one, or several in parentheses.
    pub(super) fn tests(&mut self) -> Result<Vec<Test>, SyntaxError> {
        if !self.is("(") {
            if let Some(comparison) = self.comparison_operator() {
                let operand = self.expression(super::parser::ADDITION - 1)?;
                return Ok(vec![Test {
                    comparison: Some(comparison),
                    operand,
                    condition: false,
                }]);
            }
            let operand = self.expression(super::parser::ADDITION - 1)?;
            return Ok(vec![Test {
                comparison: None,
                operand,
                condition: false,
            }]);
        }
        let offset = self.offset();
        self.advance();
        let outer = std::mem::take(&mut self.endpoint);
        let mut tests = vec![self.test()?];
        if let [
            Test {
                comparison: None,
                operand,
                ..
            },
        ] = tests.as_slice()
            && self.take("..")
        {
            let operand = self.range(*operand, false, offset)?;
            tests = vec![Test {
                comparison: None,
                operand,
                condition: false,
            }];
            self.endpoint = outer;
            return Ok(tests);
        }
        while self.take(",") {
            tests.push(self.test()?);
        }
        self.endpoint = outer;
        self.expect(")")?;
        tests.iter_mut().for_each(|test| test.condition = false);
        Ok(tests)
    }
}
