//! How points and ranges lie to each other.

use super::{BuiltIn, row};
use crate::compare::{order, within};
use crate::evaluate::Outcome;
use crate::value::{Range, Value};
use std::cmp::Ordering::{Equal, Greater, Less};

const POINT_RANGE: &[&[&str]] = &[
    &["point1", "point2"],
    &["point", "range"],
    &["range", "point"],
    &["range1", "range2"],
    &["range 1", "range 2"],
];

pub(super) const TABLE: &[BuiltIn] = &[
    row("before", POINT_RANGE, |_, arguments| relation(arguments, before)),
    row("after", POINT_RANGE, |_, arguments| {
        relation(arguments, |a, b| before(b, a))
    }),
    row("meets", POINT_RANGE, |_, arguments| ranges(arguments, meets)),
    row("met by", POINT_RANGE, |_, arguments| {
        ranges(arguments, |a, b| meets(b, a))
    }),
    row("overlaps", POINT_RANGE, |_, arguments| {
        ranges(arguments, overlaps)
    }),
    row("overlaps before", POINT_RANGE, |_, arguments| {
        ranges(arguments, overlaps_before)
    }),
    row("overlaps after", POINT_RANGE, |_, arguments| {
        ranges(arguments, |a, b| overlaps_before(b, a))
    }),
    row("finishes", POINT_RANGE, |_, arguments| {
        relation(arguments, finishes)
    }),
    row("finished by", POINT_RANGE, |_, arguments| {
        relation(arguments, |a, b| finishes(b, a))
    }),
    row("includes", POINT_RANGE, |_, arguments| {
        relation(arguments, includes)
    }),
    row("during", POINT_RANGE, |_, arguments| {
        relation(arguments, |a, b| includes(b, a))
    }),
    row("starts", POINT_RANGE, |_, arguments| relation(arguments, starts)),
    row("started by", POINT_RANGE, |_, arguments| {
        relation(arguments, |a, b| starts(b, a))
    }),
    row("coincides", POINT_RANGE, |_, arguments| {
        relation(arguments, coincides)
    }),
];

/// `None` where the ends cannot be compared, or the relation is not defined for a point.
type Relation = Option<bool>;

fn relation(arguments: &[Value], holds: impl Fn(&Value, &Value) -> Relation) -> Outcome {
    let [a, b] = arguments else { return Ok(Value::Null) };
    Ok(holds(a, b).into())
}

fn ranges(arguments: &[Value], holds: impl Fn(&Range, &Range) -> Relation) -> Outcome {
    match arguments {
        [Value::Range(a), Value::Range(b)] => Ok(holds(a, b).into()),
        _ => Ok(Value::Null),
    }
}

fn before(a: &Value, b: &Value) -> Relation {
    match (a, b) {
        (Value::Range(a), Value::Range(b)) => match order(&a.end, &b.start)? {
            Less => Some(true),
            Equal => Some(!a.end_included || !b.start_included),
            Greater => Some(false),
        },
        (Value::Range(a), point) => match order(&a.end, point)? {
            Less => Some(true),
            Equal => Some(!a.end_included),
            Greater => Some(false),
        },
        (point, Value::Range(b)) => match order(point, &b.start)? {
            Less => Some(true),
            Equal => Some(!b.start_included),
            Greater => Some(false),
        },
        (a, b) => order(a, b).map(|order| order == Less),
    }
}

fn meets(a: &Range, b: &Range) -> Relation {
    Some(a.end_included && b.start_included && order(&a.end, &b.start)? == Equal)
}

/// Whether `a` reaches the start of `b`.
fn reaches(a: &Range, b: &Range) -> Relation {
    match order(&a.end, &b.start)? {
        Greater => Some(true),
        Equal => Some(a.end_included && b.start_included),
        Less => Some(false),
    }
}

fn overlaps(a: &Range, b: &Range) -> Relation {
    Some(reaches(a, b)? && reaches(b, a)?)
}

fn overlaps_before(a: &Range, b: &Range) -> Relation {
    let starts = match order(&a.start, &b.start)? {
        Less => true,
        Equal => a.start_included && !b.start_included,
        Greater => false,
    };
    let ends = match order(&a.end, &b.end)? {
        Less => true,
        Equal => !a.end_included || b.end_included,
        Greater => false,
    };
    Some(starts && reaches(a, b)? && ends)
}

fn finishes(a: &Value, b: &Value) -> Relation {
    match (a, b) {
        (Value::Range(a), Value::Range(b)) => {
            let starts = match order(&a.start, &b.start)? {
                Greater => true,
                Equal => !a.start_included || b.start_included,
                Less => false,
            };
            Some(starts && a.end_included == b.end_included && order(&a.end, &b.end)? == Equal)
        }
        (Value::Range(_), _) => None,
        (point, Value::Range(b)) => Some(b.end_included && order(point, &b.end)? == Equal),
        _ => None,
    }
}

fn includes(a: &Value, b: &Value) -> Relation {
    match (a, b) {
        (Value::Range(a), Value::Range(b)) => {
            let starts = match order(&a.start, &b.start)? {
                Less => true,
                Equal => a.start_included || !b.start_included,
                Greater => false,
            };
            let ends = match order(&a.end, &b.end)? {
                Greater => true,
                Equal => a.end_included || !b.end_included,
                Less => false,
            };
            Some(starts && ends)
        }
        (Value::Range(a), point) => within(a, point),
        _ => None,
    }
}

fn starts(a: &Value, b: &Value) -> Relation {
    match (a, b) {
        (Value::Range(a), Value::Range(b)) => {
            let ends = match order(&a.end, &b.end)? {
                Less => true,
                Equal => !a.end_included || b.end_included,
                Greater => false,
            };
            Some(ends && a.start_included == b.start_included && order(&a.start, &b.start)? == Equal)
        }
        (Value::Range(_), _) => None,
        (point, Value::Range(b)) => Some(b.start_included && order(point, &b.start)? == Equal),
        _ => None,
    }
}

fn coincides(a: &Value, b: &Value) -> Relation {
    match (a, b) {
        (Value::Range(a), Value::Range(b)) => Some(
            a.start_included == b.start_included
                && a.end_included == b.end_included
                && order(&a.start, &b.start)? == Equal
                && order(&a.end, &b.end)? == Equal,
        ),
        (Value::Range(_), _) | (_, Value::Range(_)) => None,
        (a, b) => order(a, b).map(|order| order == Equal),
    }
}
