//! Timers.

use tidegate_model::ElementIndex;

use super::rows::*;
use super::{Make, Subject, at};
use crate::commit::{Expect, Refusal, Write};
use crate::row::TimerRow;

/// Due timers come by due time, none before its time.
pub fn timers_come_in_order(make: Make<'_>) {
    let mut subject = Subject::new(make);
    for (owner, due_at) in [(5, 30), (4, 10), (3, 20), (2, -5), (1, 40)] {
        subject.write(vec![Write::ArmTimer(timer(owner, due_at))]);
    }
    subject = subject.reopen();
    let due = subject.store.timers(at(30), None, 10).unwrap();
    assert_eq!(due, [timer(2, -5), timer(4, 10), timer(3, 20), timer(5, 30)]);
    assert_eq!(subject.store.timers(at(30), None, 2).unwrap(), due[..2]);
    assert_eq!(subject.store.timers(at(30), Some(&due[1]), 10).unwrap(), due[2..]);
    assert_eq!(subject.store.timers(at(-6), None, 10).unwrap(), []);
}

/// One timer for each owner and element: arming again replaces it, disarming removes it, if it is there.
pub fn a_timer_is_replaced_by_its_like(make: Make<'_>) {
    let subject = Subject::new(make);
    let start = TimerRow {
        instance: None,
        fired: 4,
        ..timer(1, 50)
    };
    subject.write(vec![
        Write::ArmTimer(timer(1, 10)),
        Write::ArmTimer(start.clone()),
    ]);
    let other = TimerRow {
        element: ElementIndex(3),
        ..timer(1, 60)
    };
    subject.write(vec![Write::ArmTimer(other.clone())]);
    assert_eq!(
        subject.store.timers(at(100), None, 10).unwrap(),
        [start, other.clone()]
    );
    let disarm = || Write::DisarmTimer {
        owner: 1,
        element: ElementIndex(2),
    };
    subject.write(vec![disarm(), disarm()]);
    assert_eq!(subject.store.timers(at(100), None, 10).unwrap(), [other]);
}

/// A firing counts only while its timer is armed for that time: a replaced or disarmed one is refused, and leaves nothing.
pub fn a_timer_fires_as_it_is_armed(make: Make<'_>) {
    let subject = Subject::new(make);
    let expect = |due_at| Expect::Timer {
        owner: 1,
        element: ElementIndex(2),
        due_at: at(due_at),
    };
    let gone = Refusal::TimerGone {
        owner: 1,
        element: ElementIndex(2),
    };
    let fired = || vec![Write::ArmTimer(timer(9, 1))];
    assert_eq!(subject.refusal(vec![expect(10)], fired()), gone);
    subject.write(vec![Write::ArmTimer(timer(1, 10))]);
    subject.write(vec![Write::ArmTimer(timer(1, 20))]);
    assert_eq!(subject.refusal(vec![expect(10)], fired()), gone);
    assert_eq!(subject.store.timers(at(100), None, 10).unwrap(), [timer(1, 20)]);
    subject
        .commit(
            vec![expect(20)],
            vec![Write::DisarmTimer {
                owner: 1,
                element: ElementIndex(2),
            }],
        )
        .expect("it is armed for that time");
    assert_eq!(subject.refusal(vec![expect(20)], fired()), gone);
    assert_eq!(subject.store.timers(at(100), None, 10).unwrap(), []);
}

/// Timers of one due time are ordered by owner and element, so that pages neither repeat nor skip one.
pub fn equal_due_times_are_paged(make: Make<'_>) {
    let subject = Subject::new(make);
    let mut expected = Vec::new();
    for owner in 1..=7 {
        for element in 0..3 {
            expected.push(TimerRow {
                element: ElementIndex(element),
                ..timer(owner, 10)
            });
        }
    }
    subject.write(expected.iter().rev().cloned().map(Write::ArmTimer).collect());
    let mut paged: Vec<TimerRow> = Vec::new();
    loop {
        let page = subject.store.timers(at(10), paged.last(), 4).unwrap();
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, expected);
}
