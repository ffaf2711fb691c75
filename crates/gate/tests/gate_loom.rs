//! Every interleaving of closing, admitting, releasing and waiting, walked by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p tidegate-gate --test gate_loom --release`.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;
use tidegate_gate::{Closing, Entering, Gate, Refused, Registry};

/// Every interleaving with `preemptions` switches at most (all that there are, if none is named).
fn walk(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}

/// Two workers with every interleaving take half a minute, and longer with a waiter: one is walked wholly, two with
/// as many switches as find every known fault of this kind.
const FOR_TWO: Option<usize> = Some(3);

#[test]
fn q09_after_close_returns_no_permit_is_given_and_the_count_only_falls() {
    walk(None, || after_close(1));
    walk(FOR_TWO, || after_close(2));
}

fn after_close(workers: usize) {
    let gate = Gate::new();
    let workers: Vec<_> = (0..workers)
        .map(|_| {
            let gate = gate.clone();
            thread::spawn(move || drop(gate.admit()))
        })
        .collect();
    gate.close(Closing::Pause);
    let first = gate.read().live();
    assert!(gate.admit().is_none());
    let second = gate.read().live();
    assert!(second <= first, "the count rose from {first} to {second}");
    for worker in workers {
        worker.join().unwrap();
    }
    assert_eq!(gate.read().live(), 0);
    assert!(gate.admit().is_none());
}

#[test]
fn q09_who_waits_for_idleness_is_always_told() {
    walk(None, || waiting(1));
    walk(FOR_TWO, || waiting(2));
}

fn waiting(workers: usize) {
    let gate = Gate::new();
    let told = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> = (0..workers)
        .map(|_| {
            let gate = gate.clone();
            thread::spawn(move || drop(gate.admit()))
        })
        .collect();
    gate.close(Closing::Drain);
    let waiting = told.clone();
    let seen = gate.clone();
    gate.when_idle(move || {
        assert_eq!(seen.read().live(), 0, "told while something is live");
        waiting.fetch_add(1, Ordering::SeqCst);
    });
    for worker in workers {
        worker.join().unwrap();
    }
    assert_eq!(told.load(Ordering::SeqCst), 1, "told exactly once");
}

#[test]
fn two_who_wait_are_both_told_also_before_an_open_gate() {
    loom::model(|| {
        let gate = Gate::new();
        let told = Arc::new(AtomicUsize::new(0));
        let permit = gate.admit().unwrap();
        let worker = thread::spawn(move || drop(permit));
        let (other, waiting) = (gate.clone(), told.clone());
        let waiter = thread::spawn(move || {
            other.when_idle(move || {
                waiting.fetch_add(1, Ordering::SeqCst);
            });
        });
        let waiting = told.clone();
        gate.when_idle(move || {
            waiting.fetch_add(1, Ordering::SeqCst);
        });
        worker.join().unwrap();
        waiter.join().unwrap();
        assert_eq!(told.load(Ordering::SeqCst), 2);
    });
}

#[test]
fn a_narrow_gate_that_is_closed_lets_nobody_through_whatever_the_shell_does() {
    loom::model(|| {
        let (shell, narrow) = (Gate::new(), Gate::new());
        let (s, n) = (shell.clone(), narrow.clone());
        let worker = thread::spawn(move || s.admit_through([Some(&n), None], Entering::Start).map(drop));
        narrow.close(Closing::Starts);
        let first = narrow.read().live();
        assert_eq!(
            shell
                .admit_through([Some(&narrow), None], Entering::Start)
                .unwrap_err(),
            Refused::Narrow
        );
        assert!(narrow.read().live() <= first);
        shell.close(Closing::Drain);
        let refused = worker.join().unwrap();
        assert!(refused.is_ok() || matches!(refused, Err(Refused::Narrow | Refused::Shell)));
        assert_eq!(
            (narrow.read().live(), shell.read().live()),
            (0, 0),
            "whatever happened, nothing is held"
        );
    });
}

#[test]
fn a_pause_that_is_lifted_never_lifts_a_drain() {
    loom::model(|| {
        let gate = Gate::new();
        gate.close(Closing::Pause);
        let other = gate.clone();
        let drainer = thread::spawn(move || other.close(Closing::Drain));
        gate.lift_pause();
        assert!(drainer.join().unwrap());
        assert!(gate.read().is_draining() && !gate.read().is_paused());
        assert!(gate.admit().is_none());
    });
}

#[test]
fn the_registry_is_empty_once_the_gate_is_closed_and_idle() {
    loom::model(|| {
        let gate = Gate::new();
        let registry = Registry::new(1);
        let (g, r) = (gate.clone(), registry.clone());
        let worker = thread::spawn(move || {
            if let Some(permit) = g.admit() {
                drop(r.enter(0, permit, 7));
            }
        });
        gate.close(Closing::Drain);
        let is_idle = Arc::new(AtomicBool::new(false));
        let (flag, seen) = (is_idle.clone(), registry.clone());
        gate.when_idle(move || {
            assert!(seen.is_empty(), "an entry outlived its permit");
            flag.store(true, Ordering::SeqCst);
        });
        // The count is read after the list: whatever is listed is still counted, or was.
        let listed = registry.len() as u64;
        assert!(listed <= 1);
        worker.join().unwrap();
        assert!(is_idle.load(Ordering::SeqCst));
        assert!(registry.is_empty());
    });
}
