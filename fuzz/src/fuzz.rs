//! The program that libFuzzer drives: the target is in `TIDEGATE_FUZZ`, what follows are libFuzzer's own arguments.

#![no_main]
#![allow(unsafe_code, reason = "libFuzzer calls in by a C name")]

use std::sync::OnceLock;

use tidegate_fuzz::target::{self, Target};

static TARGET: OnceLock<Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(init: {
    let name = std::env::var("TIDEGATE_FUZZ").unwrap_or_default();
    let names: Vec<&str> = target::TARGETS.iter().map(|(name, _)| *name).collect();
    let target = target::named(&name);
    let target = target.unwrap_or_else(|| panic!("TIDEGATE_FUZZ is `{name}`: expected one of {}", names.join(", ")));
    let _ = TARGET.set(target);
}, |bytes: &[u8]| {
    if let Some(target) = TARGET.get() {
        target(bytes);
    }
});
