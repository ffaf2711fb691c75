//! What the fuzzer runs: one target for each way in which bytes come from outside.
//!
//! A target takes any bytes. It is right if it returns; what must hold it asserts. `make fuzz TARGET=… SECONDS=…` lets
//! libFuzzer choose the bytes, and `tests/corpus.rs` gives each target its folder of `fuzz/corpus`, where the seeds are
//! and every input that once found something.

pub mod model;
pub mod target;
