//! What is expected of each hostile file: the codes it may be refused with, and how it runs where it is accepted.

/// How an accepted file runs.
pub enum Run {
    /// To its end, completing these elements in this order.
    Path(&'static [&'static str]),
    /// To its end, completing this element once and so many others.
    Once(&'static str, usize),
    /// Into an incident at this element that says this.
    Incident(&'static str, &'static str),
    /// Until it waits at this element alone.
    Waits(&'static str),
    /// To its end or to rest, whatever it waits for.
    Rests,
    /// Three turns of its timer start no more than so many instances.
    Starts(usize),
    /// Until a signal that throws itself again has been stopped.
    Storm,
    /// To its end once its user task is completed, with these events so often.
    Task(&'static [(&'static str, usize)]),
    /// One message releases one of so many waits.
    OneMessage(usize),
}

/// One file or several that begin alike.
pub struct Row {
    /// The beginning of its name, up to an underscore.
    pub file: &'static str,
    /// The codes one of which a refusal names.
    pub refusals: &'static [&'static str],
    /// How it runs when it is not refused.
    pub run: Option<Run>,
}

const fn refused(file: &'static str, refusals: &'static [&'static str]) -> Row {
    Row {
        file,
        refusals,
        run: None,
    }
}

const fn runs(file: &'static str, run: Run) -> Row {
    Row {
        file,
        refusals: &[],
        run: Some(run),
    }
}

const STE: Run = Run::Path(&["s", "t", "e"]);

/// Every hostile file.
pub const ROWS: &[Row] = &[
    refused("x01", &["dtd-refused"]),
    refused("x02", &["dtd-refused"]),
    refused("x03", &["dtd-refused"]),
    refused("x04", &["dtd-refused"]),
    refused("x05", &["dtd-refused"]),
    refused("x06", &["dtd-refused"]),
    refused("x07", &["dtd-refused"]),
    refused("x08", &["too-deep"]),
    Row {
        file: "x09",
        refusals: &["value-too-long"],
        run: Some(STE),
    },
    refused("x10", &["too-many-attributes"]),
    refused("x11", &["too-many-namespaces", "too-many-attributes"]),
    refused("x12", &["duplicate-attribute"]),
    refused("x13", &["undeclared-prefix"]),
    refused("x14", &["wrong-namespace"]),
    refused("x15", &["wrong-namespace"]),
    refused("x16", &["xml-syntax"]),
    refused("x17", &["empty-file"]),
    refused("x18", &["empty-file"]),
    runs("x19", STE),
    refused("x20", &["xml-syntax", "invalid-bytes"]),
    refused("x21", &["invalid-bytes"]),
    runs("x22", STE),
    runs("x23", STE),
    runs("x24", STE),
    refused("x25", &["encoding-mismatch"]),
    refused("x26", &["xml-syntax"]),
    runs("x27", STE),
    runs("x28", STE),
    refused("x29", &["not-xml"]),
    refused("x30", &["not-xml"]),
    refused("x31", &["xml-syntax"]),
    runs("x32", STE),
    runs("x33", Run::Path(&["s", "g", "a"])),
    runs("x34", Run::Path(&["s", "e"])),
    refused("r01", &["dangling-reference"]),
    refused("r02", &["dangling-reference"]),
    refused("r03", &["flow-crosses-scope"]),
    refused("r04", &["start-event-with-incoming"]),
    refused("r05", &["end-event-with-outgoing"]),
    refused("r06", &["dangling-reference"]),
    refused("r07", &["wrong-reference-kind"]),
    refused("r08", &["default-flow-not-outgoing"]),
    refused("r09", &["duplicate-id"]),
    runs("r10", Run::Incident("c", "`Nope`")),
    refused("r11", &["link-without-target"]),
    refused("r12", &["duplicate-link"]),
    refused("r13", &["dangling-reference"]),
    refused("r14", &["dangling-reference"]),
    refused("r15", &["timer-missing"]),
    refused("r16", &["timer-invalid"]),
    refused("r17", &["event-gateway-without-event"]),
    // Its receive task names no message either, which is found first and hides the rest.
    refused(
        "r18",
        &["event-gateway-too-few-events", "message-reference-missing"],
    ),
    refused("r19", &["no-start"]),
    refused("r20", &["event-sub-process-without-start"]),
    refused("r21", &["event-sub-process-with-flow"]),
    refused("r22", &["cancel-outside-transaction"]),
    Row {
        file: "r23",
        refusals: &["compensation-without-handler"],
        run: Some(STE),
    },
    refused("r24", &["compensation-handler-in-flow"]),
    refused("r25", &["duplicate-id", "duplicate-process-id"]),
    refused("r26", &["missing-id", "process-id-missing"]),
    runs("r27", STE),
    runs("r28", Run::Waits("c")),
    runs("r29", STE),
    runs("r30", Run::Path(&["début", "задача_1", "終"])),
    runs("z01", Run::Incident("t", "too many steps")),
    runs("z02", Run::Incident("m", "too many steps")),
    // The start, the fork, 2,000 tasks, the join.
    runs("z03", Run::Once("e", 2_003)),
    runs("z04", Run::Incident("t", "live")),
    runs("z05", Run::Incident("t", "too many turns")),
    runs("z06", Run::Path(&["s", "t", "e"])),
    runs("z07", Run::Incident("t", "too many turns")),
    runs("z08", Run::Path(&["s", "c", "e"])),
    runs("z09", Run::Waits("c")),
    Row {
        file: "z10",
        refusals: &["timer-invalid"],
        run: Some(Run::Starts(3)),
    },
    runs("z11", Run::Starts(4)),
    runs("z12", Run::Storm),
    runs("z13", Run::Path(&["s", "s1", "s2", "b", "caught"])),
    runs(
        "z14",
        Run::Task(&[
            ("ElementCompleted b", 1),
            ("ElementCompleted e2", 1),
            ("ElementCompleted e", 1),
        ]),
    ),
    runs("z15", Run::Incident("c", "1000 levels")),
    runs("z16", Run::Incident("c", "1000 levels")),
    runs("z17", Run::Rests),
    Row {
        file: "z18",
        refusals: &["too-deep"],
        run: Some(Run::Rests),
    },
    runs(
        "z19",
        Run::Task(&[
            ("ElementCompleted t", 1),
            ("ElementCompleted e", 1),
            ("TimerFired b0", 0),
        ]),
    ),
    refused("z20", &["expression-syntax"]),
    refused("z21", &["script-format-unknown"]),
    refused("z22", &["script-format-unknown"]),
    // The start and 3,000 tasks.
    runs("z23", Run::Once("e", 3_001)),
    // The start and 500 blocks of four.
    runs("z25", Run::Once("e", 2_001)),
    // The start, both gateways and 500 tasks.
    runs("z26", Run::Once("e", 503)),
    runs("z27", Run::OneMessage(200)),
];
