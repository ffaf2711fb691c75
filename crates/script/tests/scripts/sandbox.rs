//! What scripts cannot reach.

use crate::support::{Scripts, patient};

/// All that a script finds in its global object. A new version of the interpreter that brings more makes this fail:
/// look whether it is harmless.
const GLOBALS: &str = "AggregateError Array ArrayBuffer AsyncDisposableStack Atomics BigInt BigInt64Array BigUint64Array \
Boolean BpmnError DataView Date DisposableStack Error EvalError Float16Array Float32Array Float64Array Function \
Infinity Int16Array Int32Array Int8Array InternalError Iterator JSON Map Math NaN Number Object Promise Proxy \
RangeError ReferenceError Reflect RegExp Set SharedArrayBuffer String SuppressedError Symbol SyntaxError TypeError URIError \
Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakSet decodeURI decodeURIComponent \
encodeURI encodeURIComponent escape eval globalThis isFinite isNaN parseFloat parseInt queueMicrotask undefined \
unescape variables";

#[tokio::test]
async fn the_global_object_holds_the_language_and_no_more() {
    let scripts = Scripts::new(patient());
    let globals = scripts
        .value("Object.getOwnPropertyNames(globalThis).sort().join(' ')", "{}")
        .await;
    assert_eq!(globals.trim_matches('"'), GLOBALS);
}

#[tokio::test]
async fn there_is_no_clock_and_no_chance() {
    let scripts = Scripts::new(patient());
    for script in [
        "new Date()",
        "Date()",
        "Date.now()",
        "Date.call(null)",
        "Reflect.construct(Date, [])",
        "Reflect.construct(Date, [], Object)",
        "new (Date.prototype.constructor)()",
        "new (new Date(0).constructor)()",
        "class Sub extends Date {}; new Sub()",
        "Reflect.construct = (target) => target; new (new Date(0))()",
        "new Date(...[])",
    ] {
        let message = scripts.failure(script).await;
        assert!(
            message.contains("no clock") || message.contains("not a constructor"),
            "{script}: {message}"
        );
    }
    assert!(scripts.failure("Math.random()").await.contains("no chance"));
    assert_eq!(
        scripts
            .value(
                "new Date(0).getHours() + new Date(2026, 0, 1).toISOString()",
                "{}"
            )
            .await,
        r#""02026-01-01T00:00:00.000Z""#
    );
    assert_eq!(
        scripts
            .value("new Date(5) instanceof Date && Date.UTC(1970, 0)", "{}")
            .await,
        "0"
    );
}

#[tokio::test]
async fn there_are_no_modules_files_or_network() {
    let scripts = Scripts::new(patient());
    for script in [
        "require('fs')",
        "std.open('/etc/passwd', 'r')",
        "os.exec(['true'])",
        "fetch('http://localhost')",
        "process.env",
        "setTimeout(() => {}, 1)",
        "import('std')",
        "import('/etc/passwd')",
        "import fs from 'fs'",
        "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000)",
    ] {
        let message = scripts.failure(script).await;
        assert!(message.contains("Error"), "{script}: {message}");
    }
}

#[tokio::test]
async fn one_script_leaves_nothing_for_the_next() {
    let scripts = Scripts::new(patient());
    scripts
        .run(
            "globalThis.left = secret; Object.prototype.left = 1; Array.prototype.map = () => 'mine';
             JSON.stringify = () => 'mine'; Symbol.for('left').description; BpmnError.prototype.name = 'x'; 0",
            r#"{"secret": 1}"#,
        )
        .await
        .unwrap();
    let seen =
        "[typeof left, typeof secret, ({}).left === undefined, [1].map(n => n + 1)[0], JSON.stringify(1)]";
    assert_eq!(
        scripts.value(seen, "{}").await,
        r#"["undefined","undefined",true,2,"1"]"#
    );
    assert_eq!(scripts.started(), 1);
}
