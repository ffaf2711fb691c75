//! The laws, one checker each. A checker looks at a whole record and says what breaks its law.

mod closed_gate;
mod commit_first;
mod cut_record;
mod finished;
mod no_task_left;
mod nothing_lost;
mod nothing_silent;
mod one_owner;
mod order;

use crate::fact::Record;

/// A law: its name, and what of a record breaks it.
pub struct Law {
    /// Its name, in kebab-case.
    pub name: &'static str,
    /// Its checker.
    pub check: fn(&Record) -> Vec<String>,
}

/// All of them.
pub const LAWS: &[Law] = &[
    Law {
        name: "one-owner",
        check: one_owner::check,
    },
    Law {
        name: "nothing-lost",
        check: nothing_lost::check,
    },
    Law {
        name: "commit-first",
        check: commit_first::check,
    },
    Law {
        name: "closed-gate",
        check: closed_gate::check,
    },
    Law {
        name: "cut-record",
        check: cut_record::check,
    },
    Law {
        name: "finished",
        check: finished::check,
    },
    Law {
        name: "order",
        check: order::check,
    },
    Law {
        name: "nothing-silent",
        check: nothing_silent::check,
    },
    Law {
        name: "no-task-left",
        check: no_task_left::check,
    },
];
