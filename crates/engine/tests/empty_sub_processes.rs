//! Sub-processes with nothing to do: they complete at once, and whatever stands around them goes on as usual.

mod common;

use common::model::{Bare, Play, START_END, chain, flow, host, job, large};
use tidegate_model::SubStatus;

#[test]
fn an_empty_sub_process_completes_at_once() {
    let listens = "<subProcess id='ev' triggeredByEvent='true'><startEvent id='es'><messageEventDefinition \
                   messageRef='news'/></startEvent></subProcess>";
    let handler = job("undo", "isForCompensation='true'", "");
    for (what, empty) in [
        ("nothing in it", "<subProcess id='t'/>".to_owned()),
        ("a transaction", "<transaction id='t'/>".to_owned()),
        ("what listens only", format!("<subProcess id='t'>{listens}</subProcess>")),
        ("what undoes only", format!("<subProcess id='t'>{handler}</subProcess>")),
        ("data only", "<subProcess id='t'><dataObject id='d'/></subProcess>".to_owned()),
        (
            "one in another",
            "<subProcess id='t'><subProcess id='deep'/></subProcess>".to_owned(),
        ),
        (
            "with a time limit",
            "<subProcess id='t'/><boundaryEvent id='b' attachedToRef='t'><timerEventDefinition><timeDuration>PT1S\
             </timeDuration></timerEventDefinition></boundaryEvent>"
                .to_owned(),
        ),
        (
            "three times at once",
            "<subProcess id='t'><multiInstanceLoopCharacteristics><loopCardinality>3</loopCardinality>\
             </multiInstanceLoopCharacteristics></subProcess>"
                .to_owned(),
        ),
        (
            "three times in turn",
            "<subProcess id='t'><multiInstanceLoopCharacteristics isSequential='true'><loopCardinality>3\
             </loopCardinality></multiInstanceLoopCharacteristics></subProcess>"
                .to_owned(),
        ),
        (
            "in a loop",
            "<subProcess id='t'><standardLoopCharacteristics loopMaximum='3'/></subProcess>".to_owned(),
        ),
    ] {
        let mut run = host(&format!("{START_END}{empty}{}", chain(&["s", "t", "e"])));
        run.begin("{}");
        assert_eq!(run.instance.ended(), Some(SubStatus::Finished), "{what}");
        run.check_journal();
    }
}

#[test]
fn ten_thousand_empty_sub_processes_in_a_row_need_no_stack() {
    let ids: Vec<String> = (0..10_000).map(|id| format!("t{id}")).collect();
    let all: String = ids.iter().map(|id| format!("<subProcess id='{id}'/>")).collect();
    let mut way = vec!["s"];
    way.extend(ids.iter().map(String::as_str));
    way.push("e");
    let mut run = Bare::new(large(&format!("{START_END}{all}{}", chain(&way))));
    run.start();
    assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
}

#[test]
fn work_beside_an_empty_sub_process_goes_on() {
    let mut run = host(&format!(
        "{START_END}<parallelGateway id='fork'/><parallelGateway id='join'/><subProcess id='t'/>{}{}{}",
        job("work", "", ""),
        chain(&["s", "fork", "t", "join", "e"]),
        chain(&["fork", "work"]) + &flow("work", "join")
    ));
    run.begin("{}");
    assert_eq!(run.instance.ended(), None);
    run.finish("work", "{}");
    assert_eq!(run.instance.ended(), Some(SubStatus::Finished));
}
