//! The gate, the permits it gives, and the registry of what lives by them.
//!
//! One [`Gate`] is the admission point of a shell; narrower gates of the same kind stand before it, one for each
//! process id and each tenant. A [`Permit`] passes the narrow gates first and the shell's last, and holds all of
//! them until it is dropped. A live cycle is a permit with an entry in the [`Registry`]: see [`Live`].
//!
//! There is no async runtime here and nothing else of the runtime, so that every interleaving can be walked:
//! `RUSTFLAGS="--cfg loom" cargo test -p tidegate-gate --release`.

mod gate;
mod registry;
mod sync;

pub use gate::{Closing, Entering, Gate, Permit, Quiescence, Refused};
pub use registry::{Live, Registry};
