//! Who or what caused a transition.

use minicbor::{Decode, Encode};
use serde::Serialize;

/// The cause that travels with every transition.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Cause {
    /// A client asked through the API or the library, named by its identity.
    #[n(0)]
    Client {
        /// The identity's name.
        #[n(0)]
        actor: String,
    },
    /// An operator acted, with a reason where one was given.
    #[n(1)]
    Operator {
        /// The identity's name.
        #[n(0)]
        actor: String,
        /// The operator's own words.
        #[n(1)]
        reason: Option<String>,
    },
    /// An in-process handler or a worker, by name.
    #[n(2)]
    Worker {
        /// The worker's name, or the handler's job type.
        #[n(0)]
        name: String,
    },
    /// A timer fell due.
    #[n(3)]
    Timer,
    /// A message arrived.
    #[n(4)]
    Message {
        /// The message's key.
        #[n(0)]
        message: u64,
        /// Who sent it.
        #[n(1)]
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<Box<Cause>>,
    },
    /// A drain's deadline passed.
    #[n(5)]
    Deadline,
    /// An operator forced a drain.
    #[n(6)]
    Force,
    /// Recovery on activation, after an interruption.
    #[n(7)]
    Recovery,
    /// Recovery after a crash.
    #[n(8)]
    CrashRecovery,
    /// The parent instance.
    #[n(9)]
    Parent {
        /// The parent's key.
        #[n(0)]
        instance: u64,
    },
    /// A called instance.
    #[n(11)]
    Child {
        /// Its key.
        #[n(0)]
        instance: u64,
    },
    /// A signal was thrown.
    #[n(12)]
    Signal {
        /// Who threw it.
        #[n(0)]
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<Box<Cause>>,
    },
    /// Another instance, by what it throws or sends.
    #[n(13)]
    Instance {
        /// Its key.
        #[n(0)]
        instance: u64,
    },
    /// The engine itself, as a consequence of the step before.
    #[n(10)]
    Engine,
}
