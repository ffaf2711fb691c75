//! The simulation itself: a seed is one run, and what it prints is enough to run it again.

use tidegate_sim::{run, run_with, temper::Temper};

#[test]
fn the_same_seed_gives_the_same_run_line_by_line() {
    for seed in [3, 17, 44, 205] {
        let (first, second) = (run(seed), run(seed));
        for (at, (one, other)) in first.trace.iter().zip(&second.trace).enumerate() {
            assert_eq!(one, other, "seed {seed}, line {at}");
        }
        assert_eq!(first.trace.len(), second.trace.len(), "seed {seed}");
        assert_eq!(first.broken, second.broken, "seed {seed}");
    }
}

#[test]
fn other_seeds_give_other_runs() {
    assert_ne!(run(1).trace, run(2).trace);
}

#[test]
fn a_report_has_the_seed_the_trace_and_the_command_that_replays_it() {
    let mut run = run_with(8, Temper::of(8), None);
    run.broken.push(("order", "for the sake of the test".to_owned()));
    let report = run.report();
    assert!(report.starts_with("seed 8\n"), "{report}");
    assert!(report.contains("settled"), "{report}");
    assert!(
        report.contains("BROKEN order: for the sake of the test\n"),
        "{report}"
    );
    assert!(report.ends_with("replay: make sim SEEDS=1 FROM=8\n"), "{report}");
}
