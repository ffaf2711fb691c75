//! Control of one instance: suspend, let go, cancel; why it does not move; and all of it at once.

#[path = "control/cancel.rs"]
mod cancel;
#[path = "control/cause.rs"]
mod cause;
#[path = "control/crash.rs"]
mod crash;
#[path = "control/hold.rs"]
mod hold;
#[path = "control/once.rs"]
mod once;
#[path = "control/race.rs"]
mod race;
mod support;
#[path = "control/why.rs"]
mod why;
