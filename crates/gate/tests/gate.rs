//! What a gate says of itself, and what each verb leaves alone.
#![cfg(not(loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tidegate_gate::{Closing, Entering, Gate, Registry};

#[test]
fn q03_q07_every_closing_says_what_it_admits_and_is_lifted_or_stays() {
    use Closing::{Drain, Pause, Starts};
    // closings, accepting, accepting starts, paused, draining, reason
    type Row = (&'static [Closing], bool, bool, bool, bool, &'static str);
    let table: [Row; 8] = [
        (&[], true, true, false, false, "None"),
        (&[Starts], true, false, false, false, "None"),
        (&[Pause], false, false, true, false, "AdministrativePause"),
        (&[Drain], false, false, false, true, "Drain"),
        (&[Starts, Pause], false, false, true, false, "AdministrativePause"),
        (&[Starts, Drain], false, false, false, true, "Drain"),
        (
            &[Pause, Drain],
            false,
            false,
            true,
            true,
            "AdministrativePause, Drain",
        ),
        (
            &[Starts, Pause, Drain],
            false,
            false,
            true,
            true,
            "AdministrativePause, Drain",
        ),
    ];
    for (closings, accepting, starts, paused, draining, reason) in table {
        let gate = Gate::new();
        // Live permits, and somebody who waits: neither shows in what the gate says of its flags.
        let permits = [gate.admit().unwrap(), gate.admit().unwrap()];
        gate.when_idle(|| ());
        for closing in closings {
            assert!(gate.close(*closing), "{closings:?}: the flag is new");
            assert!(!gate.close(*closing), "{closings:?}: and set once");
        }
        let state = gate.read();
        assert_eq!(state.is_accepting(), accepting, "{closings:?}");
        assert_eq!(state.is_accepting_starts(), starts, "{closings:?}");
        assert_eq!(state.is_paused(), paused, "{closings:?}");
        assert_eq!(state.is_draining(), draining, "{closings:?}");
        assert_eq!(state.reason(), reason, "{closings:?}");
        assert_eq!(state.live(), 2, "{closings:?}");
        assert_eq!(gate.admit().is_some(), accepting, "{closings:?}");
        let start = gate.admit_through([None, None], Entering::Start);
        assert_eq!(start.is_ok(), starts, "{closings:?}");
        drop(start);

        let pause = closings.iter().any(|closing| *closing != Drain);
        assert_eq!(gate.lift_pause(), pause, "{closings:?}");
        assert!(!gate.lift_pause(), "{closings:?}: nothing is left to lift");
        let state = gate.read();
        assert!(!state.is_paused(), "{closings:?}");
        assert_eq!(state.is_draining(), draining, "{closings:?}");
        assert_eq!(state.is_accepting_starts(), !draining, "{closings:?}");
        assert_eq!(
            state.live(),
            2,
            "{closings:?}: a lifted pause leaves the permits alone"
        );
        drop(permits);
        assert_eq!(gate.read().live(), 0);
    }
}

#[test]
fn closing_tells_how_many_were_live_at_that_moment() {
    let gate = Gate::new();
    let permits: Vec<_> = (0..3).map(|_| gate.admit().unwrap()).collect();
    assert_eq!(gate.close_counting(Closing::Drain), 3);
    assert!(gate.read().is_draining());
    drop(permits);
    assert_eq!(gate.close_counting(Closing::Pause), 0);
}

#[test]
fn who_waits_is_told_once_and_only_when_nothing_is_live() {
    let gate = Gate::new();
    let told = Arc::new(AtomicUsize::new(0));
    let wait = || {
        let told = told.clone();
        gate.when_idle(move || {
            told.fetch_add(1, Ordering::SeqCst);
        });
    };
    wait();
    assert_eq!(told.load(Ordering::SeqCst), 1, "nothing is live: at once");

    let (first, second) = (gate.admit().unwrap(), gate.admit().unwrap());
    wait();
    wait();
    // A pause that comes and goes does not make the gate forget who waits.
    gate.close(Closing::Pause);
    gate.lift_pause();
    drop(first);
    assert_eq!(told.load(Ordering::SeqCst), 1, "one is live still");
    drop(second);
    assert_eq!(told.load(Ordering::SeqCst), 3);

    drop(gate.admit());
    assert_eq!(told.load(Ordering::SeqCst), 3, "nobody is told twice");

    let last = gate.admit().unwrap();
    wait();
    gate.close(Closing::Pause);
    drop(last);
    assert_eq!(told.load(Ordering::SeqCst), 4);
    assert!(gate.read().is_paused(), "to tell changes no flag");
}

#[test]
fn a_gate_shows_its_word_to_who_debugs() {
    let gate = Gate::new();
    let _permit = gate.admit();
    gate.close(Closing::Pause);
    let shown = format!("{gate:?}");
    assert!(shown.contains("word") && shown.contains("257"), "{shown}");
}

#[test]
fn q08_the_registry_holds_what_is_live_in_every_shard_and_uses_places_again() {
    let gate = Gate::new();
    let registry = Registry::new(2);
    assert!(registry.is_empty());
    // Shard numbers beyond the last wrap round.
    let mut live: Vec<_> = (0..5)
        .map(|number| registry.enter(number, gate.admit().unwrap(), number))
        .collect();
    assert_eq!(registry.len(), 5);
    assert!(!registry.is_empty());
    let sorted = |registry: &Registry<usize>| {
        let mut all = registry.list();
        all.sort_unstable();
        all
    };
    assert_eq!(sorted(&registry), [0, 1, 2, 3, 4]);
    drop(live.remove(1));
    assert_eq!(registry.len(), 4);
    assert_eq!(gate.read().live(), 4);
    live.push(registry.enter(1, gate.admit().unwrap(), 9));
    assert_eq!(sorted(&registry), [0, 2, 3, 4, 9]);
    assert_eq!(gate.read().live(), 5);
    drop(live);
    assert!(registry.is_empty());
    assert!(registry.list().is_empty());
    assert_eq!(gate.read().live(), 0);
}
