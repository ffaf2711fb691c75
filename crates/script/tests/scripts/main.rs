//! Scripts in real worker processes.

mod lifecycle;
mod limits;
mod process;
mod protocol;
mod result;
mod sandbox;
mod support;
mod syntax;
