//! Start events: none, message, timer. At the top of a process they create instances.

use tidegate_model::Timestamp;

use crate::compile::Reader;
use crate::decide::{Step, Turn};
use crate::definition::StarterTrigger;
use crate::element::{Active, Behaviour, MessageSpec, Trigger, compensation};
use crate::text::Failure;
use crate::timer::Schedule;

#[derive(Debug)]
enum StartEvent {
    None,
    Message(MessageSpec),
    Timer(Schedule),
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Box<dyn Behaviour>> {
    let definitions = reader.event_definitions();
    let [definition] = definitions.as_slice() else {
        return match definitions.is_empty() {
            true => Some(Box::new(StartEvent::None)),
            false => reader.unsupported_event(&definitions),
        };
    };
    if reader.is_in_event_sub_process() && reader.tag(*definition) == compensation::DEFINITION {
        return compensation::read_catch();
    }
    if reader.is_in_event_sub_process() {
        return reader.unsupported("the start event of an event sub-process");
    }
    if reader.parent.is_some() {
        return reader.refuse(
            "sub-process-start-not-none",
            "a sub-process in the flow cannot begin with an event",
            "remove the event definition from its start event",
        );
    }
    match reader.trigger(definition)? {
        Trigger::Message(message) => match message.name.literal() {
            Some(_) => Some(Box::new(StartEvent::Message(message))),
            None => reader.refuse(
                "start-event-computed",
                "a message start event needs a fixed message name: there are no variables yet",
                "write the name without `=`",
            ),
        },
        Trigger::Timer(timer) => match timer.fixed() {
            Some(schedule) => Some(Box::new(StartEvent::Timer(schedule))),
            None => reader.refuse(
                "start-event-computed",
                "a timer start event needs a fixed time: there are no variables yet",
                "write an ISO 8601 date, duration or repetition",
            ),
        },
    }
}

impl Behaviour for StartEvent {
    fn activate(&self, turn: &mut Turn<'_>, me: &Active<'_>) -> Result<(), Box<Failure>> {
        turn.then(Step::Complete(me.key));
        Ok(())
    }

    fn starter(&self) -> Option<StarterTrigger> {
        Some(match self {
            Self::None => StarterTrigger::None,
            Self::Message(message) => StarterTrigger::Message(message.name.literal()?.clone()),
            Self::Timer(_) => StarterTrigger::Timer,
        })
    }

    fn next_start(&self, after: Timestamp, fired: u32) -> Option<Timestamp> {
        match self {
            Self::Timer(schedule) => schedule.next(after, fired),
            Self::None | Self::Message(_) => None,
        }
    }
}
