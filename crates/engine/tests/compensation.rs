//! Compensation and cancelled transactions: what is undone, in which order, with which data, and what it costs to keep
//! that.

mod common;

use common::Host;
use common::model::{Bare, Play, START_END, UNDO, chain, flow, handled, host, job, large, undoable};
use tidegate_engine::Instance;
use tidegate_model::{CommandKind, SubStatus, Variables};

/// What the handler under way sees.
fn seen(host: &Host, name: &str) -> Option<String> {
    let job = host.jobs().into_iter().next().expect("a handler is under way");
    job.variables.get(name).map(|value| value.text().to_owned())
}

#[test]
fn a_handler_sees_the_data_as_of_completion() {
    let inner = format!(
        "<subProcess id='sub'><startEvent id='s2'/><endEvent id='e2'/>{}{}{}</subProcess>",
        undoable("a", ""),
        job("b", "", ""),
        chain(&["s2", "a", "b", "e2"])
    )
    .replace(
        "<subProcess id='sub'>",
        "<subProcess id='sub'><extensionElements><zeebe:ioMapping><zeebe:input source='= 1' target='own'/>\
         </zeebe:ioMapping></extensionElements>",
    );
    let body = format!(
        "{START_END}{inner}{}{UNDO}{}",
        job("c", "", ""),
        chain(&["s", "sub", "c", "undo", "e"])
    );
    let mut host = host(&body);
    host.begin("{\"n\":1,\"same\":7}");
    host.finish("a", "{\"n\":2,\"own\":10}");
    host.finish("b", "{\"n\":3,\"own\":20,\"late\":true,\"same\":7}");
    host.finish("c", "{\"n\":4,\"later\":true}");
    assert_eq!(host.open_jobs(), ["undo-a"]);
    assert_eq!(seen(&host, "n").as_deref(), Some("2"));
    assert_eq!(
        seen(&host, "own").as_deref(),
        Some("10"),
        "of the scope that has ended"
    );
    assert_eq!(seen(&host, "same").as_deref(), Some("7"));
    // What was not there then is seen as it is now.
    assert_eq!(seen(&host, "later").as_deref(), Some("true"));
    // What it gives belongs to the data of now.
    host.finish("undo-a", "{\"n\":5}");
    assert_eq!(host.variable("n").as_deref(), Some("5"));
    assert_eq!(host.instance.ended(), Some(SubStatus::Finished));
}

#[test]
fn a_handler_that_is_a_sub_process_gives_its_results_to_the_live_scope() {
    let handler = |mapping: &str| {
        format!(
            "<subProcess id='undo-a' isForCompensation='true'>{mapping}<startEvent id='s2'/><endEvent id='e2'/>{}{}{}\
             </subProcess>",
            job("undo-1", "", ""),
            job("undo-2", "", ""),
            chain(&["s2", "undo-1", "undo-2", "e2"])
        )
    };
    let model = |mapping: &str| {
        format!(
            "{START_END}{}{}{}{}{UNDO}{}",
            job("a", "", ""),
            handled("a", "undo-a"),
            handler(mapping),
            job("b", "", ""),
            chain(&["s", "a", "b", "undo", "e"])
        )
    };
    let mut host = host(&model(""));
    host.begin("{\"n\":1}");
    host.finish("a", "{\"n\":2}");
    host.finish("b", "{\"n\":3}");
    host.finish("undo-1", "{\"n\":20,\"new\":1}");
    assert_eq!(seen(&host, "n").as_deref(), Some("20"), "what it wrote itself");
    assert_eq!(host.variable("n").as_deref(), Some("3"), "as long as it runs");
    host.finish("undo-2", "{}");
    assert_eq!(host.variable("n").as_deref(), Some("20"));
    assert_eq!(host.variable("new").as_deref(), Some("1"));

    // An output mapping says all that goes out.
    let mapping = "<extensionElements><zeebe:ioMapping><zeebe:input source='= n' target='mine'/>\
                   <zeebe:output source='= n + mine' target='sum'/></zeebe:ioMapping></extensionElements>";
    let mut host = common::model::host(&model(mapping));
    host.begin("{\"n\":1}");
    host.finish("a", "{\"n\":2}");
    host.finish("b", "{\"n\":3}");
    host.finish("undo-1", "{\"n\":20}");
    host.finish("undo-2", "{\"mine\":5}");
    assert_eq!(host.variable("sum").as_deref(), Some("25"));
    assert_eq!(
        (host.variable("n").as_deref(), host.variable("mine")),
        (Some("3"), None)
    );
}

#[test]
fn an_event_sub_process_that_compensates_ends_with_the_data_of_what_it_undoes() {
    let undo = format!(
        "<subProcess id='undoing' triggeredByEvent='true'><startEvent id='s3'><compensateEventDefinition/></startEvent>\
         <endEvent id='e3'/>{}<intermediateThrowEvent id='inner'><compensateEventDefinition/></intermediateThrowEvent>{}\
         </subProcess>",
        job("undo-1", "", ""),
        chain(&["s3", "undo-1", "inner", "e3"])
    );
    let body = format!(
        "{START_END}<subProcess id='sub'><extensionElements><zeebe:ioMapping><zeebe:input source='= 1' target='own'/>\
         </zeebe:ioMapping></extensionElements><startEvent id='s2'/><endEvent id='e2'/>{}{}{undo}{}</subProcess>{}\
         {UNDO}{}",
        undoable("a", ""),
        job("b", "", ""),
        chain(&["s2", "a", "b", "e2"]),
        job("c", "", ""),
        chain(&["s", "sub", "c", "undo", "e"])
    );
    let mut host = host(&body);
    host.begin("{\"n\":1}");
    host.finish("a", "{\"own\":10}");
    host.finish("b", "{\"own\":20,\"n\":2}");
    host.finish("c", "{\"n\":3}");
    assert_eq!(
        seen(&host, "own").as_deref(),
        Some("20"),
        "as the sub-process ended"
    );
    assert_eq!(seen(&host, "n").as_deref(), Some("2"));
    host.finish("undo-1", "{\"own\":30,\"n\":9}");
    // What completed inside is undone from there, with its own data.
    assert_eq!(host.open_jobs(), ["undo-a"]);
    assert_eq!(seen(&host, "own").as_deref(), Some("10"));
    assert_eq!(seen(&host, "n").as_deref(), Some("1"));
    host.finish("undo-a", "{}");
    assert_eq!(host.variable("n").as_deref(), Some("9"));
    assert_eq!(host.variable("own"), None, "it ended with the sub-process");
    assert_eq!(host.instance.ended(), Some(SubStatus::Finished));
}

/// A transaction of two branches: activities one after the other, and a sub-process that still runs when a cancel end
/// event is reached.
fn transaction(boundary: bool) -> Host {
    let inmost = format!(
        "<subProcess id='inmost'><startEvent id='s4'/><endEvent id='e4'/>{}{}{}</subProcess>",
        undoable("d", ""),
        job("wait", "", ""),
        chain(&["s4", "d", "wait", "e4"])
    );
    let running = format!(
        "<subProcess id='running'><startEvent id='s3'/><endEvent id='e3'/>{}{inmost}{}</subProcess>",
        undoable("c", ""),
        chain(&["s3", "c", "inmost", "e3"])
    );
    let done = format!(
        "<subProcess id='done'><startEvent id='s5'/><endEvent id='e5'/>{}{}</subProcess>",
        undoable("b", ""),
        chain(&["s5", "b", "e5"])
    );
    let cancelled = if boundary {
        format!(
            "<boundaryEvent id='cancelled' attachedToRef='tx'><cancelEventDefinition/></boundaryEvent>{}{}",
            job("after", "", ""),
            chain(&["cancelled", "after", "e"])
        )
    } else {
        String::new()
    };
    let body = format!(
        "{START_END}<transaction id='tx'><startEvent id='s2'/><parallelGateway id='fork'/><endEvent id='never'>\
         <cancelEventDefinition/></endEvent>{}{done}{running}{}{}{}</transaction>{cancelled}{}{}",
        undoable("a", ""),
        job("decide", "", ""),
        chain(&["s2", "fork", "a", "done", "decide", "never"]),
        flow("fork", "running"),
        job("next", "", ""),
        chain(&["s", "tx", "next", "e"])
    );
    let mut host = host(&body);
    host.begin("{}");
    for id in ["a", "c", "b", "d"] {
        host.finish(id, &format!("{{\"last\":\"{id}\"}}"));
    }
    assert_eq!(host.open_jobs(), ["decide", "wait"]);
    host
}

#[test]
fn a_cancelled_transaction_undoes_what_completed_also_inside_what_still_runs() {
    let mut host = transaction(true);
    host.finish("decide", "{\"last\":\"decide\"}");
    // What ran is ended first. Its parts come first, since it was ended last; each group in reverse.
    assert_eq!(host.open_jobs(), ["undo-d"]);
    assert_eq!(seen(&host, "last").as_deref(), Some("\"d\""));
    assert_eq!(host.undo_all(), ["undo-d", "undo-c", "undo-b", "undo-a"]);
    assert_eq!(host.open_jobs(), ["after"]);
    host.finish("after", "{}");
    assert_eq!(host.instance.ended(), Some(SubStatus::Finished));
}

#[test]
fn a_transaction_that_was_cancelled_is_not_undone_once_more() {
    let mut host = transaction(false);
    host.finish("decide", "{}");
    assert_eq!(host.undo_all(), ["undo-d", "undo-c", "undo-b", "undo-a"]);
    assert_eq!(host.open_jobs(), ["next"]);
    host.finish("next", "{}");
    assert_eq!(host.instance.ended(), Some(SubStatus::Finished));
}

#[test]
fn what_was_being_undone_when_a_transaction_is_cancelled_is_undone_again() {
    let body = format!(
        "{START_END}<transaction id='tx'><startEvent id='s2'/><parallelGateway id='fork'/><endEvent id='e2'/>\
         <endEvent id='never'><cancelEventDefinition/></endEvent>{}{}{}{UNDO}{}{}{}</transaction>{}",
        undoable("a", ""),
        undoable("b", ""),
        job("decide", "", ""),
        chain(&["s2", "a", "b", "fork", "undo", "e2"]),
        flow("fork", "decide"),
        flow("decide", "never"),
        chain(&["s", "tx", "e"])
    );
    let mut host = host(&body);
    host.begin("{}");
    host.finish("a", "{}");
    host.finish("b", "{}");
    assert_eq!(host.open_jobs(), ["decide", "undo-b"]);
    host.finish("decide", "{}");
    assert_eq!(host.undo_all(), ["undo-b", "undo-a"]);
    assert_eq!(host.instance.ended(), Some(SubStatus::Finished));
}

#[test]
fn a_sub_process_that_ended_abnormally_is_not_undone() {
    for end in [
        "<terminateEventDefinition/>",
        "<errorEventDefinition errorRef='bad'/>",
    ] {
        let body = format!(
            "{START_END}{}<subProcess id='sub'><startEvent id='s2'/><endEvent id='e2'>{end}</endEvent>{}{}\
             </subProcess><boundaryEvent id='caught' attachedToRef='sub'><errorEventDefinition errorRef='bad'/>\
             </boundaryEvent>{}{}<exclusiveGateway id='merge'/>{UNDO}{}{}",
            undoable("first", ""),
            undoable("a", ""),
            chain(&["s2", "a", "e2"]),
            handled("sub", "undo-sub"),
            job("undo-sub", "isForCompensation='true'", ""),
            chain(&["s", "first", "sub", "merge", "undo", "e"]),
            flow("caught", "merge")
        );
        let mut host = host(&body);
        host.begin("{}");
        host.finish("first", "{}");
        host.finish("a", "{}");
        assert_eq!(host.undo_all(), ["undo-first"], "{end}");
        assert_eq!(host.instance.ended(), Some(SubStatus::Finished));
    }
}

#[test]
fn an_event_sub_process_undoes_what_completed_in_the_scope_it_interrupted() {
    let handler = format!(
        "<subProcess id='onError' triggeredByEvent='true'><startEvent id='s3'><errorEventDefinition errorRef='bad'/>\
         </startEvent><endEvent id='e3'/>{UNDO}{}</subProcess>",
        chain(&["s3", "undo", "e3"])
    );
    let body = format!(
        "{START_END}<subProcess id='sub'><startEvent id='s2'/><endEvent id='e2'><errorEventDefinition errorRef='bad'/>\
         </endEvent>{}{}{handler}{}</subProcess>{}",
        undoable("a", ""),
        undoable("b", ""),
        chain(&["s2", "a", "b", "e2"]),
        chain(&["s", "sub", "e"])
    );
    let mut host = host(&body);
    host.begin("{}");
    host.finish("a", "{\"n\":1}");
    host.finish("b", "{\"n\":2}");
    assert_eq!(host.open_jobs(), ["undo-b"]);
    assert_eq!(host.undo_all(), ["undo-b", "undo-a"]);
    assert_eq!(host.instance.ended(), Some(SubStatus::Finished));
}

#[test]
fn an_event_that_does_not_wait_goes_on_beside_the_handlers() {
    let undo = "<intermediateThrowEvent id='undo'><compensateEventDefinition waitForCompletion='false'/>\
                </intermediateThrowEvent>";
    let body = format!(
        "{START_END}<parallelGateway id='fork'/><inclusiveGateway id='join'/>{}{}{}{}{undo}{}{}",
        undoable("a", ""),
        undoable("b", ""),
        job("other", "", ""),
        job("next", "", ""),
        chain(&["s", "a", "b", "fork", "undo", "join", "next", "e"]),
        chain(&["fork", "other", "join"]),
    );
    let mut host = host(&body);
    host.begin("{}");
    host.finish("a", "{}");
    host.finish("b", "{}");
    host.finish("other", "{}");
    // Its token has gone on, so a join does not wait for the handlers; the process does.
    assert_eq!(host.open_jobs(), ["next", "undo-b"]);
    host.finish("next", "{}");
    assert_eq!(host.instance.ended(), None);
    assert_eq!(host.undo_all(), ["undo-b", "undo-a"]);
    assert_eq!(host.instance.ended(), Some(SubStatus::Finished));
}

#[test]
fn each_turn_of_a_repeated_activity_is_undone_in_reverse() {
    let repetitions = [
        "<multiInstanceLoopCharacteristics isSequential='true'><extensionElements><zeebe:loopCharacteristics \
         inputCollection='= [1, 2, 3]' inputElement='item'/></extensionElements></multiInstanceLoopCharacteristics>",
        "<multiInstanceLoopCharacteristics><extensionElements><zeebe:loopCharacteristics \
         inputCollection='= [1, 2, 3]' inputElement='item'/></extensionElements></multiInstanceLoopCharacteristics>",
        "<standardLoopCharacteristics loopMaximum='3'/>",
    ];
    for repetition in repetitions {
        let body = format!(
            "{START_END}{}{UNDO}{}",
            undoable("a", repetition),
            chain(&["s", "a", "undo", "e"])
        );
        let mut host = host(&body);
        host.begin("{}");
        for turn in 1..=3 {
            host.finish("a", &format!("{{\"n\":{turn}}}"));
        }
        for turn in [3, 2, 1] {
            assert_eq!(host.open_jobs(), ["undo-a"]);
            assert_eq!(seen(&host, "loopCounter"), Some(turn.to_string()), "{repetition}");
            assert_eq!(seen(&host, "n"), Some(turn.to_string()), "{repetition}");
            host.finish("undo-a", "{}");
        }
        assert_eq!(host.instance.ended(), Some(SubStatus::Finished));
    }
}

#[test]
fn turns_that_completed_are_undone_when_their_transaction_is_cancelled() {
    let many = "<multiInstanceLoopCharacteristics><loopCardinality>3</loopCardinality>\
                </multiInstanceLoopCharacteristics>";
    let body = format!(
        "{START_END}<transaction id='tx'><startEvent id='s2'/><parallelGateway id='fork'/><endEvent id='e2'/>\
         <endEvent id='never'><cancelEventDefinition/></endEvent>{}{}{}{}{}</transaction>{}",
        undoable("a", many),
        job("decide", "", ""),
        chain(&["s2", "fork", "a", "e2"]),
        flow("fork", "decide"),
        flow("decide", "never"),
        chain(&["s", "tx", "e"])
    );
    let mut host = host(&body);
    host.begin("{}");
    host.finish("a", "{}");
    host.finish("a", "{}");
    host.finish("decide", "{}");
    assert_eq!(seen(&host, "loopCounter").as_deref(), Some("2"));
    assert_eq!(host.undo_all(), ["undo-a", "undo-a"]);
    assert_eq!(host.instance.ended(), Some(SubStatus::Finished));
}

const TURNS: usize = 10_000;

/// A loop of jobs that can be compensated.
fn looped(turns: usize, mapping: &str, variables: &str, results: impl Fn(usize) -> String) -> Bare {
    let activity = undoable("a", "").replacen(
        "</extensionElements>",
        &format!("{mapping}</extensionElements>"),
        1,
    );
    let body = format!(
        "{START_END}<exclusiveGateway id='merge'/><exclusiveGateway id='decide' default='decide-merge'/>{activity}{UNDO}\
         {}<sequenceFlow id='out' sourceRef='decide' targetRef='undo'><conditionExpression>= done = true\
         </conditionExpression></sequenceFlow>",
        chain(&["s", "merge", "a", "decide", "merge"])
    ) + &flow("undo", "e");
    let mut run = Bare::new(large(&body));
    let variables = Variables::parse(variables).unwrap();
    let element = None;
    run.command(CommandKind::Start { element, variables });
    for turn in 0..turns {
        turned(&mut run, &results(turn));
    }
    run
}

/// Completes the one job that is open.
fn turned(run: &mut Bare, results: &str) {
    let job = run.jobs.pop().expect("a job is open");
    let variables = Variables::parse(results).unwrap();
    run.command(CommandKind::CompleteJob { job, variables });
}

/// What the state takes, written and in memory after it was read.
fn size(run: &Bare) -> (usize, usize) {
    let bytes = run.instance.encode();
    let read = Instance::decode(&bytes).unwrap();
    assert_eq!(read, run.instance);
    (bytes.len(), read.bytes())
}

#[test]
fn ten_thousand_turns_that_can_be_undone_share_what_does_not_change() {
    let large = "x".repeat(100_000);
    let start = format!("{{\"large\":\"{large}\",\"n\":0}}");
    let (bytes, memory) = size(&looped(TURNS, "", &start, |_| "{\"n\":1}".to_owned()));
    eprintln!("{TURNS} turns: {bytes} bytes, about {memory} in memory");
    assert!(bytes < 100_000 + TURNS * 32, "{bytes} bytes");
    assert!(memory < 100_000 + TURNS * 400, "{memory} bytes in memory");
    // What changes with each turn is kept for each, and nothing else.
    let mut run = looped(TURNS, "", &start, |turn| format!("{{\"n\":{turn}}}"));
    let (bytes, _) = size(&run);
    assert!(bytes < 100_000 + TURNS * 48, "{bytes} bytes");
    // All of them are undone, each with its own, and what was kept for them goes. The last turn changes nothing.
    turned(&mut run, "{\"done\":true}");
    for turn in (0..TURNS).rev().take(1).chain((0..TURNS).rev()) {
        let handler = run.jobs.last().copied().expect("a handler is under way");
        let kept = run.instance.variables_of(handler).unwrap();
        assert_eq!(
            kept.get("n").map(|value| value.text().to_owned()),
            Some(turn.to_string())
        );
        turned(&mut run, "{}");
        if turn == TURNS / 2 {
            assert!(size(&run).0 < 300_000 + TURNS * 24);
        }
    }
    assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
}

#[test]
fn a_large_value_that_comes_again_with_each_turn_is_kept_once() {
    const TURNS: usize = 300;
    let large = "x".repeat(100_000);
    let start = format!("{{\"large\":\"{large}\",\"n\":0}}");
    // The worker gives it back each time.
    let back = format!("{{\"large\":\"{large}\"}}");
    let (bytes, memory) = size(&looped(TURNS, "", &start, |_| back.clone()));
    assert!(bytes < 100_000 + TURNS * 32, "{bytes} bytes");
    assert!(memory < 100_000 + TURNS * 400, "{memory} bytes in memory");
    // Each turn has it as an input of its own.
    let mapping = "<zeebe:ioMapping><zeebe:input source='= large' target='mine'/></zeebe:ioMapping>";
    let (bytes, memory) = size(&looped(TURNS, mapping, &start, |_| "{}".to_owned()));
    assert!(bytes < 300_000 + TURNS * 48, "{bytes} bytes");
    assert!(memory < 300_000 + TURNS * 500, "{memory} bytes in memory");
}

#[test]
fn a_loop_that_undoes_its_own_turns_keeps_nothing_of_them() {
    let body = format!(
        "{START_END}{}<exclusiveGateway id='merge'/>{}\
         <intermediateThrowEvent id='undo'><compensateEventDefinition activityRef='a'/></intermediateThrowEvent>\
         <exclusiveGateway id='decide' default='decide-merge'/>{}{}",
        undoable("first", ""),
        undoable("a", ""),
        chain(&["s", "first", "merge", "a", "undo", "decide", "merge"]),
        "<sequenceFlow id='out' sourceRef='decide' targetRef='e'><conditionExpression>= n > 1000\
         </conditionExpression></sequenceFlow>"
    );
    let mut host = host(&body);
    host.begin("{\"n\":0}");
    host.finish("first", "{}");
    host.checks_prefixes = false;
    let mut size = 0;
    for turn in 1..=200 {
        host.finish("a", &format!("{{\"n\":{}}}", turn % 7));
        host.finish("undo-a", "{}");
        let now = host.instance.encode().len();
        if turn == 20 {
            size = now;
        }
        assert!(
            turn <= 20 || now <= size + 8,
            "{now} bytes after {turn} turns, {size} after 20"
        );
    }
}
