//! What is in sight of an expression: what its element requires, and round it the names of boxed expressions.

use std::sync::Arc;

use tidegate_expression::{Context, Scope, Value};

/// One name in sight, or the item of a filter, whose entries are names too.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    Binding(Arc<str>, Value),
    Item(Value),
}

impl Frame {
    pub(crate) fn value(&self) -> &Value {
        match self {
            Frame::Binding(_, value) | Frame::Item(value) => value,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Sight {
    pub root: Arc<Context>,
    /// Innermost last.
    pub frames: Vec<Frame>,
    pub now_ms: i64,
}

impl Sight {
    pub(crate) fn bind(&mut self, name: &Arc<str>, value: Value) {
        self.frames.push(Frame::Binding(name.clone(), value));
    }
}

impl Scope for Sight {
    fn lookup(&self, name: &str) -> Option<Value> {
        let local = self.frames.iter().rev().find_map(|frame| match frame {
            Frame::Binding(bound, value) => (&**bound == name).then(|| value.clone()),
            Frame::Item(item) => {
                let entry = item.as_context().and_then(|context| context.get(name)).cloned();
                entry.or_else(|| (name == "item").then(|| item.clone()))
            }
        });
        local.or_else(|| self.root.get(name).cloned())
    }

    fn now_ms(&self) -> i64 {
        self.now_ms
    }
}
