//! Timer events: how a timer is read and armed.

use tidegate_model::ElementIndex;
use tidegate_model::document::{Document, NodeId};

use crate::compile::Reader;
use crate::decide::Turn;
use crate::element::Waiter;
use crate::event::Event;
use crate::text::Failure;
use crate::timer::{TimerKind, TimerSpec};

/// Reads a `timerEventDefinition`.
pub(crate) fn read(reader: &mut Reader<'_>, definition: NodeId) -> Option<TimerSpec> {
    let document: &Document = reader.document;
    let kinds = [
        ("timeDate", TimerKind::Date),
        ("timeDuration", TimerKind::Duration),
        ("timeCycle", TimerKind::Cycle),
    ];
    let given: Vec<_> = kinds
        .into_iter()
        .filter_map(|(tag, kind)| Some((kind, document.child(definition, tag)?.1)))
        .filter(|(_, element)| !element.text.trim().is_empty())
        .collect();
    let [(kind, element)] = given.as_slice() else {
        return reader.refuse(
            "timer-missing",
            "a timer must have one of date, duration and cycle",
            "add a timeDate, timeDuration or timeCycle with an ISO 8601 text or an expression",
        );
    };
    let text = reader.text(&element.text, element.position)?;
    match TimerSpec::new(*kind, text) {
        Ok(timer) => Some(timer),
        Err(wrong) => reader.refuse_at(element.position, "timer-invalid", &wrong, "correct the timer"),
    }
}

/// Arms a timer on `owner` for `element`.
pub(super) fn arm(
    timer: &TimerSpec,
    turn: &mut Turn<'_>,
    waiter: &Waiter<'_>,
    element: ElementIndex,
) -> Result<(), Box<Failure>> {
    let schedule = timer.schedule(&turn.visible(waiter.from, waiter.locals))?;
    let (due_at, repeat) = schedule.first(turn.now);
    // Only an event that leaves its owner running can fire again.
    let repeat = repeat.filter(|_| !turn.definition.element(element).behaviour.is_interrupting());
    turn.event(Event::TimerArmed {
        owner: waiter.owner,
        element,
        due_at,
        repeat,
    });
    Ok(())
}
