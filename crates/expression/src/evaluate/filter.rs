//! `list[filter]`: an item by its position, or the items for which a condition is true.

use std::sync::Arc;

use crate::evaluate::{Frame, Machine, Outcome};
use crate::expression::Code;
use crate::tree::NodeId;
use crate::value::Value;

impl Machine<'_> {
    pub(super) fn filter(&mut self, code: &Arc<Code>, base: NodeId, filter: NodeId) -> Outcome {
        let base = self.evaluate(code, base)?;
        let single = [base.clone()];
        let items: &[Value] = match &base {
            Value::List(list) => list,
            Value::Null => &[],
            _ => &single,
        };
        let mut kept = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let verdict = self.with_item(code, filter, item)?;
            match verdict {
                Value::Boolean(true) => kept.push(item.clone()),
                Value::Number(position) if index == 0 => return Ok(at(items, position.to_i64())),
                Value::Boolean(false) | Value::Null => {}
                _ if index == 0 => return Ok(Value::Null),
                _ => {}
            }
        }
        if base.is_null() || (items.is_empty() && self.evaluate(code, filter)?.as_number().is_some()) {
            return Ok(Value::Null);
        }
        self.list(kept)
    }

    fn with_item(&mut self, code: &Arc<Code>, filter: NodeId, item: &Value) -> Outcome {
        self.frames.push(Frame::Item(item.clone()));
        let verdict = self.evaluate(code, filter);
        self.frames.pop();
        verdict
    }
}

/// The item at a position from one, or from the end if negative.
fn at(items: &[Value], position: Option<i64>) -> Value {
    let index = match position {
        Some(position) if position > 0 => usize::try_from(position - 1).ok(),
        Some(position) => usize::try_from(position.unsigned_abs())
            .ok()
            .filter(|back| *back > 0)
            .and_then(|back| items.len().checked_sub(back)),
        None => None,
    };
    index
        .and_then(|index| items.get(index))
        .cloned()
        .unwrap_or(Value::Null)
}
