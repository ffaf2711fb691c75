//! Hit policies: what a table makes of the rules that match.

use std::sync::LazyLock;

use tidegate_expression::Expression;

/// What a table makes of the rules that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HitPolicy {
    /// At most one rule may match.
    Unique,
    /// Several may, with equal outputs.
    Any,
    /// The first that matches counts.
    First,
    /// The one with the output value that stands first among the output values.
    Priority,
    /// All, in the order of the rules.
    RuleOrder,
    /// All, in the order of the output values.
    OutputOrder,
    /// All in any order, or what an aggregation makes of them.
    Collect(Option<Aggregation>),
}

/// What becomes of collected outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregation {
    Sum,
    Min,
    Max,
    Count,
}

impl HitPolicy {
    /// The policy that an attribute names, in full or by its letter.
    pub(crate) fn named(name: &str, aggregation: Option<Aggregation>) -> Option<HitPolicy> {
        Some(match name {
            "UNIQUE" | "U" => HitPolicy::Unique,
            "ANY" | "A" => HitPolicy::Any,
            "FIRST" | "F" => HitPolicy::First,
            "PRIORITY" | "P" => HitPolicy::Priority,
            "RULE ORDER" | "R" => HitPolicy::RuleOrder,
            "OUTPUT ORDER" | "O" => HitPolicy::OutputOrder,
            "COLLECT" | "C" => HitPolicy::Collect(aggregation),
            _ => return None,
        })
    }

    /// Whether the result is a list of all hits.
    pub(crate) fn gives_list(self) -> bool {
        matches!(
            self,
            HitPolicy::RuleOrder | HitPolicy::OutputOrder | HitPolicy::Collect(None)
        )
    }
}

type Prepared = LazyLock<Option<Expression>>;

static SUM: Prepared = LazyLock::new(|| Expression::feel("sum(outputs)").ok());
static MIN: Prepared = LazyLock::new(|| Expression::feel("min(outputs)").ok());
static MAX: Prepared = LazyLock::new(|| Expression::feel("max(outputs)").ok());
static COUNT: Prepared = LazyLock::new(|| Expression::feel("count(outputs)").ok());

impl Aggregation {
    pub(crate) fn named(name: &str) -> Option<Aggregation> {
        Some(match name {
            "SUM" => Aggregation::Sum,
            "MIN" => Aggregation::Min,
            "MAX" => Aggregation::Max,
            "COUNT" => Aggregation::Count,
            _ => return None,
        })
    }

    /// FEEL's function of the list `outputs`, so that both compute alike.
    pub(crate) fn expression(self) -> Option<&'static Expression> {
        match self {
            Aggregation::Sum => SUM.as_ref(),
            Aggregation::Min => MIN.as_ref(),
            Aggregation::Max => MAX.as_ref(),
            Aggregation::Count => COUNT.as_ref(),
        }
    }
}
