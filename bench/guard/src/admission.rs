//! One admission: a permit through the gates of a process and a tenant and the shell's, registered, and given back.

use std::hint::black_box;

use tidegate_gate::{Entering, Gate, Registry};

pub fn run(rounds: u64) {
    let (process, tenant, shell) = (Gate::new(), Gate::new(), Gate::new());
    let registry = Registry::new(2);
    for round in 0..rounds {
        let permit = shell
            .admit_through([Some(&process), Some(&tenant)], Entering::Start)
            .expect("the gates are open");
        drop(black_box(registry.enter(0, permit, round)));
    }
    assert!(registry.is_empty() && shell.read().live() == 0);
}
