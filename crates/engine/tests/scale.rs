//! Models and instances far larger than those of people. What recursion would overflow the stack does not, and what they cost
//! grows in proportion: events, allocations, bytes and the processor's time.

mod common;
#[path = "common/cost.rs"]
mod cost;

use std::fmt::Write;

use common::model::{Bare, START_END, chain, flow, job, large, undoable};
use tidegate_engine::{Event, Instance};
use tidegate_model::{CommandKind, Effect, SubStatus};

/// Tasks one behind the other.
fn row_of(length: usize) -> String {
    let mut body = String::from("<startEvent id='s'/><endEvent id='e'/>");
    let mut last = "s".to_owned();
    for position in 0..length {
        write!(
            body,
            "<task id='t{position}'/>{}",
            flow(&last, &format!("t{position}"))
        )
        .unwrap();
        last = format!("t{position}");
    }
    body + &flow(&last, "e")
}

#[test]
fn a_row_of_a_hundred_thousand_tasks_costs_as_much_for_each() {
    let events = |length: usize| {
        let mut run = Bare::new(large(&row_of(length)));
        let (events, _) = run.start();
        assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
        assert!(run.instance.encode().len() < 64, "nothing is left of it");
        events.len()
    };
    let (first, second, last) = (events(12_500), events(25_000), events(100_000));
    assert_eq!(second - first, 12_500 * 3);
    assert_eq!(last - second, 75_000 * 3);
}

#[test]
fn reading_a_model_costs_as_much_for_each_element() {
    let branches = |tag: &'static str| move |size| wide(tag, size);
    cost::grows_in_proportion("a row", 1_000, row_of, |body, _| large(&body));
    let deep = |size: usize| nested(size, &job("inmost", "", ""), &|_| String::new());
    cost::grows_in_proportion("sub-processes in each other", 250, deep, |body, _| large(&body));
    for tag in ["parallelGateway", "inclusiveGateway"] {
        cost::grows_in_proportion(tag, 500, branches(tag), |body, _| large(&body));
    }
}

#[test]
fn running_a_row_costs_as_much_for_each_task() {
    let prepare = |length: usize| Bare::new(large(&row_of(length)));
    cost::grows_in_proportion("a row", 1_000, prepare, |mut run, _| {
        run.start();
        assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
    });
}

#[test]
fn splitting_and_joining_costs_as_much_for_each_branch() {
    for tag in ["parallelGateway", "inclusiveGateway"] {
        let prepare = |branches: usize| Bare::new(large(&wide(tag, branches)));
        cost::grows_in_proportion(tag, 500, prepare, |mut run, _| {
            run.start();
            for job in std::mem::take(&mut run.jobs) {
                run.complete(job);
            }
            assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
        });
    }
}

#[test]
fn each_turn_round_gateways_costs_the_same() {
    let body = format!(
        "{START_END}<exclusiveGateway id='merge'/><exclusiveGateway id='decide'/>{}{}",
        job("work", "", ""),
        chain(&["s", "merge", "work", "decide", "merge"])
    );
    let prepare = |_| Bare::new(large(&body));
    cost::grows_in_proportion("turns round gateways", 1_000, prepare, |mut run, turns| {
        run.start();
        for _ in 0..turns {
            let job = run.jobs.pop().expect("the next turn");
            run.complete(job);
        }
    });
}

#[test]
fn cancelling_costs_as_much_for_each_token() {
    let prepare = |branches: usize| {
        let mut run = Bare::new(large(&wide("parallelGateway", branches)));
        run.start();
        run
    };
    cost::grows_in_proportion("cancelled tokens", 500, prepare, |mut run, _| {
        run.command(CommandKind::Cancel);
        assert_eq!(run.instance.ended(), Some(SubStatus::Cancelled));
    });
}

/// A sub-process inside a sub-process, and so on; what is inmost, and what each has besides.
fn nested(depth: usize, inmost: &str, beside: &dyn Fn(usize) -> String) -> String {
    let mut body = String::from(START_END);
    for level in 0..depth {
        let (source, target) = match level {
            0 => ("s".to_owned(), "e".to_owned()),
            _ => (format!("s{}", level - 1), format!("e{}", level - 1)),
        };
        let id = format!("sub{level}");
        write!(
            body,
            "{}{}{}<subProcess id='{id}'><startEvent id='s{level}'/><endEvent id='e{level}'/>",
            flow(&source, &id),
            flow(&id, &target),
            beside(level)
        )
        .unwrap();
    }
    let last = depth - 1;
    write!(
        body,
        "{inmost}{}",
        chain(&[&format!("s{last}"), "inmost", &format!("e{last}")])
    )
    .unwrap();
    body + &"</subProcess>".repeat(depth)
}

const DEEP: usize = 1_000;

#[test]
fn a_thousand_sub_processes_inside_each_other_run_and_end() {
    let definition = large(&nested(DEEP, &job("inmost", "", ""), &|_| String::new()));
    let mut run = Bare::new(definition);
    run.start();
    let job = run.jobs[0];
    assert_eq!(run.instance.tokens(&run.definition).len(), DEEP + 1);
    let bytes = run.instance.encode();
    assert_eq!(Instance::decode(&bytes).as_ref(), Ok(&run.instance));
    let mut cancelled = Bare::new(run.definition.clone());
    cancelled.start();
    let (events, _) = cancelled.command(CommandKind::Cancel);
    assert_eq!(events.len(), DEEP + 3, "each is ended once");
    let (events, _) = run.complete(job);
    assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
    assert!(events.len() < DEEP * 8);
}

#[test]
fn an_error_goes_outward_through_a_thousand_scopes() {
    let inmost = "<endEvent id='inmost'><errorEventDefinition errorRef='bad'/></endEvent>";
    let caught = |level: usize| match level {
        0 => format!(
            "<boundaryEvent id='caught' attachedToRef='sub0'><errorEventDefinition errorRef='bad'/></boundaryEvent>{}{}",
            job("after", "", ""),
            chain(&["caught", "after", "e"])
        ),
        _ => String::new(),
    };
    // An end event has no way on.
    let body = nested(DEEP, inmost, &caught).replace(&flow("inmost", &format!("e{}", DEEP - 1)), "");
    let mut run = Bare::new(large(&body));
    run.start();
    assert_eq!(run.jobs.len(), 1);
    run.complete(run.jobs[0]);
    assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
}

#[test]
fn what_completed_a_thousand_scopes_deep_is_undone() {
    let body = nested(DEEP, &undoable("inmost", ""), &|_| String::new()).replace(&flow("sub0", "e"), "")
        + "<intermediateThrowEvent id='undo'><compensateEventDefinition/></intermediateThrowEvent>"
        + &chain(&["sub0", "undo", "e"]);
    let mut run = Bare::new(large(&body));
    run.start();
    run.complete(run.jobs[0]);
    assert_eq!(run.jobs.len(), 2, "the handler");
    let bytes = run.instance.encode();
    assert_eq!(Instance::decode(&bytes).as_ref(), Ok(&run.instance));
    assert!(bytes.len() < DEEP * 32);
    run.complete(run.jobs[1]);
    assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
}

const MANY: usize = 10_000;

/// Ten thousand jobs at once, and a way to end them.
fn at_once(more: &str) -> Bare {
    let many = format!(
        "<multiInstanceLoopCharacteristics><loopCardinality>{MANY}</loopCardinality></multiInstanceLoopCharacteristics>"
    );
    let body = format!(
        "{START_END}<parallelGateway id='fork'/>{}{}{}{more}",
        job("many", "", &many),
        chain(&["s", "fork", "many", "e"]),
        job("end-it", "", "") + &flow("fork", "end-it")
    );
    let mut run = Bare::new(large(&body));
    run.start();
    assert_eq!(run.jobs.len(), MANY + 1);
    run
}

fn ended(events: &[Event]) -> usize {
    let ended = events
        .iter()
        .filter(|event| matches!(event, Event::ElementTerminated { .. }));
    ended.count()
}

fn gone(effects: &[Effect]) -> usize {
    effects
        .iter()
        .filter(|effect| matches!(effect, Effect::JobGone(_)))
        .count()
}

#[test]
fn ten_thousand_tokens_are_cancelled_once_each() {
    let mut run = at_once("");
    let (events, effects) = run.command(CommandKind::Cancel);
    assert_eq!((ended(&events), gone(&effects)), (MANY + 2, MANY + 1));
    assert!(events.len() < MANY + 8 && effects.len() < MANY + 8);
    assert_eq!(run.instance.ended(), Some(SubStatus::Cancelled));

    // Also by a terminate end event, and by what interrupts the activity.
    let terminate =
        "<endEvent id='all'><terminateEventDefinition/></endEvent>".to_owned() + &flow("end-it", "all");
    let mut run = at_once(&terminate);
    let job = run.jobs[0];
    let first = run.definition.element_by_id("end-it").unwrap();
    let tokens = run.instance.tokens(&run.definition);
    let end_it = tokens
        .iter()
        .find(|token| token.element == first)
        .and_then(|token| token.element_instance);
    let (events, effects) = run.complete(end_it.unwrap_or(job));
    assert_eq!((ended(&events), gone(&effects)), (MANY + 1, MANY + 1));
    assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
}

/// A gateway that splits, a job in each branch, and a gateway that joins.
fn wide(tag: &str, branches: usize) -> String {
    let mut body = format!(
        "{START_END}<{tag} id='split'/><{tag} id='join'/>{}",
        chain(&["s", "split"])
    );
    for branch in 0..branches {
        let id = format!("t{branch}");
        write!(body, "{}{}", job(&id, "", ""), chain(&["split", &id, "join"])).unwrap();
    }
    body + &chain(&["join", "e"])
}

#[test]
fn a_join_of_many_branches_is_not_asked_of_all_for_each() {
    for (tag, branches) in [("parallelGateway", 10_000), ("inclusiveGateway", 5_000)] {
        let mut run = Bare::new(large(&wide(tag, branches)));
        run.start();
        assert_eq!(run.jobs.len(), branches, "{tag}");
        for (done, job) in std::mem::take(&mut run.jobs).into_iter().enumerate() {
            assert_eq!(run.instance.ended(), None);
            let (events, _) = run.complete(job);
            assert!(events.len() <= 4 || done + 1 == branches, "{tag}: {events:?}");
        }
        assert_eq!(run.instance.ended(), Some(SubStatus::Finished), "{tag}");
    }
}

#[test]
fn a_loop_of_ten_thousand_turns_keeps_nothing_and_writes_the_same() {
    let body = format!(
        "{START_END}<exclusiveGateway id='merge'/><exclusiveGateway id='decide' default='decide-merge'/>{}{}\
         <sequenceFlow id='out' sourceRef='decide' targetRef='e'><conditionExpression>= done = true\
         </conditionExpression></sequenceFlow>",
        job("work", "", ""),
        chain(&["s", "merge", "work", "decide", "merge"])
    );
    let mut run = Bare::new(large(&body));
    run.start();
    let (mut size, mut events) = (0, 0);
    for turn in 0..MANY {
        let job = run.jobs.pop().expect("the next turn");
        let (turned, effects) = run.complete(job);
        let now = run.instance.encode().len();
        if turn == 10 {
            (size, events) = (now, turned.len());
        }
        assert!(
            turn <= 10 || (turned.len() == events && now <= size + 16),
            "turn {turn}: {now} bytes and {} events, {size} and {events} before",
            turned.len()
        );
        assert_eq!(effects.len(), 2);
    }
}
