//! Every example runs to its end and exits with 0.

use std::process::Command;

fn run(program: &str) -> String {
    let output = Command::new(program).output().expect("the example runs");
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert_eq!(output.status.code(), Some(0), "{out}\n{err}");
    out
}

#[test]
fn the_order_service_goes_on_after_its_restart() {
    let out = run(env!("CARGO_BIN_EXE_order-service"));
    assert!(out.contains("reserve: the goods are reserved"), "{out}");
    assert!(out.contains(r#""parcel":"P-1""#), "{out}");
    assert_eq!(
        out.matches("version 1").count(),
        2,
        "registered twice, one version: {out}"
    );
}

#[test]
fn the_source_of_the_program_loses_nothing_while_it_is_paused() {
    let out = run(env!("CARGO_BIN_EXE_own-source"));
    assert!(out.contains("2 sales wait in the till"), "{out}");
    for sale in 1..=5 {
        assert_eq!(
            out.matches(&format!(r#"receipt: {{"sale":{sale}}}"#)).count(),
            1,
            "{out}"
        );
    }
}

#[test]
fn two_shells_in_an_axum_application_are_apart() {
    let out = run(env!("CARGO_BIN_EXE_two-shells"));
    assert_eq!(out.matches("CompletedWithinDeadline").count(), 2, "{out}");
}
