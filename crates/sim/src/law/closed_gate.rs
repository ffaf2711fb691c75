//! A closed gate starts nothing: from the moment that it is closed, the count of live cycles only falls.

use crate::fact::{Fact, Record};

pub(super) fn check(record: &Record) -> Vec<String> {
    let rises = record.facts.iter().filter_map(|noted| match &noted.fact {
        Fact::ClosedRound { gate, before, after } if after > before => Some(format!(
            "behind the closed gate of {gate} the live cycles went from {before} to {after}"
        )),
        _ => None,
    });
    rises.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Noted;

    #[test]
    fn a_cycle_that_begins_behind_a_closed_gate_is_found() {
        let mut record = Record::default();
        for (before, after, broken) in [(3, 3, 0), (3, 1, 0), (1, 2, 1)] {
            let gate = "runtime".to_owned();
            let fact = Fact::ClosedRound { gate, before, after };
            record.facts = vec![Noted { life: 0, fact }];
            assert_eq!(check(&record).len(), broken);
        }
    }
}
