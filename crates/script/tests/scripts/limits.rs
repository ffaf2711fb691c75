//! Scripts that would use all there is.

use std::time::{Duration, Instant};

use tidegate::activity::ActivityError;
use tidegate_script::Options;

use crate::support::{Scripts, hasty, message, patient};

const MUCH_LATER: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_script_that_does_not_end_is_stopped() {
    let scripts = Scripts::new(hasty());
    for script in [
        "for (;;) {}",
        "for (;;) { try { for (;;) {} } catch {} finally {} }",
        "/^(a+)+$/.test('a'.repeat(40) + 'b')",
        "(async () => { for (;;) await 0; })()",
        "({ toJSON() { for (;;) {} } })",
        "throw { toJSON() { for (;;) {} } }",
        "throw new BpmnError('A', 'b', { get c() { for (;;) {} } })",
    ] {
        let began = Instant::now();
        let result = scripts.run(script, "{}").await;
        assert!(
            matches!(result, Err(ActivityError::Failed { retries: None, .. })),
            "{script}: {result:?}"
        );
        assert_eq!(
            message(result),
            "the script ran longer than 400ms and was stopped",
            "{script}"
        );
        assert!(began.elapsed() < MUCH_LATER, "{script}");
    }
    assert_eq!(scripts.value("1 + 1", "{}").await, "2");
}

#[tokio::test]
async fn a_native_call_that_heeds_no_limit_is_killed_with_its_process() {
    let scripts = Scripts::new(hasty());
    let began = Instant::now();
    assert!(
        scripts
            .failure("new Array(1e9) + ''")
            .await
            .contains("ran longer than")
    );
    assert!(began.elapsed() < MUCH_LATER);
    assert_eq!(scripts.value("1 + 1", "{}").await, "2");
    assert_eq!(scripts.started(), 2);
}

#[tokio::test]
async fn memory_is_limited() {
    let scripts = Scripts::new(Options {
        memory_bytes: 16 << 20,
        ..patient()
    });
    for script in [
        "const all = []; for (;;) all.push(new Array(1000).fill(all.length))",
        "let text = 'x'; for (;;) text += text",
        "'x'.repeat(2 ** 29)",
        "new ArrayBuffer(2 ** 30)",
        "new Uint8Array(2 ** 31)",
        "new Array(2 ** 26).fill('x')",
    ] {
        let result = scripts.run(script, "{}").await;
        assert!(
            matches!(result, Err(ActivityError::Failed { .. })),
            "{script}: {result:?}"
        );
    }
    assert_eq!(scripts.value("1 + 1", "{}").await, "2");
}

#[tokio::test]
async fn the_stack_is_limited() {
    let scripts = Scripts::new(patient());
    for script in [
        "const f = () => f() + 1; f()".to_owned(),
        format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("JSON.parse('{}')", "[".repeat(100_000)),
        "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; a".to_owned(),
    ] {
        let result = scripts.run(&script, "{}").await;
        let shown: String = script.chars().take(40).collect();
        assert!(
            matches!(result, Err(ActivityError::Failed { .. })),
            "{shown}: {result:?}"
        );
    }
    assert_eq!(scripts.value("1 + 1", "{}").await, "2");
    assert_eq!(scripts.started(), 1);
}

#[tokio::test]
async fn input_and_output_are_limited() {
    let scripts = Scripts::new(Options {
        output_bytes: 1_000,
        input_bytes: 2_000,
        ..patient()
    });
    assert_eq!(
        scripts.failure("'x'.repeat(999)").await,
        "the script's result takes 1001 bytes, 1000 are allowed"
    );
    assert!(
        scripts
            .failure("throw new BpmnError('A', '', { a: 'x'.repeat(2000) })")
            .await
            .contains("take more than")
    );
    assert!(scripts.failure("throw new Error('\\0'.repeat(1e6))").await.len() < 5_000);
    assert!(
        scripts
            .failure("throw new BpmnError('x'.repeat(1e6))")
            .await
            .contains("code is not a text")
    );
    assert!(
        scripts
            .run("throw new BpmnError('A', '\\0'.repeat(1e6))", "{}")
            .await
            .is_err()
    );
    assert_eq!(scripts.started(), 1);
    let long = message(
        scripts
            .run("1", &format!(r#"{{"a": "{}"}}"#, "x".repeat(3_000)))
            .await,
    );
    assert!(long.contains("2000 are allowed"), "{long}");
}
