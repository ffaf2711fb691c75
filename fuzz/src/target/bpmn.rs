//! A BPMN file: read, compiled, and every finding written out.

use tidegate_bpmn::{Limits, parse};
use tidegate_engine::{CompileOptions, compile};

pub fn run(bytes: &[u8]) {
    let parsed = parse("fuzz.bpmn", bytes, &Limits::default());
    let Some(document) = &parsed.document else {
        assert!(parsed.has_errors(), "a file that cannot be read says why");
        return;
    };
    let compiled = compile(document, &CompileOptions::default());
    for found in parsed.diagnostics.iter().chain(&compiled.diagnostics) {
        assert!(!found.to_string().is_empty());
    }
}
