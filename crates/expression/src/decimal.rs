//! Decimal floating point with 34 significant digits, half-even rounding and the exponent range of decimal128.
//!
//! The coefficient fits a `u128` with room for guard digits, so no operation allocates. Nothing else in the crate knows
//! the representation: another library can be put behind this type.

mod functions;
mod text;

pub use text::NotADecimal;

use std::cmp::Ordering;

/// Digits of a coefficient.
const DIGITS: u32 = 34;
const MAX_COEFFICIENT: u128 = 10u128.pow(DIGITS) - 1;
/// Half of a coefficient: products are computed in limbs of this many digits.
const LIMB: u128 = 10u128.pow(17);
const MIN_EXPONENT: i32 = -6176;
const MAX_EXPONENT: i32 = 6111;

/// A decimal number: exact for up to 34 digits, rounded half-even beyond.
///
/// The scale is kept (`1.10` prints as `1.10`), but equality and order look at the value only.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    coefficient: u128,
    exponent: i16,
    negative: bool,
}

/// How [`Decimal::rescale`] rounds what it cuts off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, ties to the even neighbour.
    HalfEven,
    /// To the nearest, ties away from zero.
    HalfUp,
    /// To the nearest, ties towards zero.
    HalfDown,
    /// Away from zero.
    Up,
    /// Towards zero.
    Down,
    /// Towards negative infinity.
    Floor,
    /// Towards positive infinity.
    Ceiling,
}

/// What was cut off, against half a unit of the last digit kept.
#[derive(Clone, Copy)]
struct Rest {
    half: Ordering,
    exact: bool,
}

const EXACT: Rest = Rest {
    half: Ordering::Less,
    exact: true,
};

impl Decimal {
    /// Zero.
    pub const ZERO: Decimal = Decimal {
        coefficient: 0,
        exponent: 0,
        negative: false,
    };
    /// One.
    pub const ONE: Decimal = Decimal {
        coefficient: 1,
        exponent: 0,
        negative: false,
    };

    /// Rounds a coefficient of any size to 34 digits; `None` beyond the exponent range.
    fn build(negative: bool, coefficient: u128, exponent: i32, rest: Rest) -> Option<Decimal> {
        let digits = digits(coefficient);
        let surplus = digits.saturating_sub(DIGITS) as i32;
        let drop = surplus.max(MIN_EXPONENT.saturating_sub(exponent));
        let (mut coefficient, mut exponent, rest) = if drop > 0 {
            let (kept, cut) = cut(coefficient, drop as u32, rest);
            (kept, exponent + drop, cut)
        } else {
            (coefficient, exponent, rest)
        };
        if rounds_up(Rounding::HalfEven, negative, coefficient, rest) {
            coefficient += 1;
            if coefficient > MAX_COEFFICIENT {
                coefficient /= 10;
                exponent += 1;
            }
        }
        if coefficient == 0 {
            exponent = exponent.clamp(MIN_EXPONENT, MAX_EXPONENT);
        }
        while exponent > MAX_EXPONENT && coefficient <= MAX_COEFFICIENT / 10 {
            coefficient *= 10;
            exponent -= 1;
        }
        if exponent > MAX_EXPONENT {
            return None;
        }
        Some(Decimal {
            coefficient,
            exponent: exponent as i16,
            negative: negative && coefficient != 0,
        })
    }

    /// The exact value of an integer and a power of ten, rounded to 34 digits.
    pub fn scaled(integer: i128, exponent: i32) -> Option<Decimal> {
        Decimal::build(integer < 0, integer.unsigned_abs(), exponent, EXACT)
    }

    /// Whether the value is zero.
    pub fn is_zero(&self) -> bool {
        self.coefficient == 0
    }

    /// Whether the value is below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether the value has no fraction.
    pub fn is_integer(&self) -> bool {
        self.exponent >= 0 || self.trimmed().exponent >= 0
    }

    /// The value without trailing zeros in the fraction.
    pub fn trimmed(&self) -> Decimal {
        let mut out = *self;
        while out.exponent < 0 && out.coefficient.is_multiple_of(10) {
            if out.coefficient == 0 {
                out.exponent = 0;
                break;
            }
            out.coefficient /= 10;
            out.exponent += 1;
        }
        out
    }

    /// The integer value, if there is no fraction and it fits.
    pub fn to_i64(&self) -> Option<i64> {
        let exact = self.trimmed();
        if exact.exponent < 0 {
            return None;
        }
        let scaled = exact.coefficient.checked_mul(power(exact.exponent as u32)?)?;
        let magnitude = i128::try_from(scaled).ok()?;
        i64::try_from(if exact.negative { -magnitude } else { magnitude }).ok()
    }

    /// The value times `10^places`, with the fraction cut off, if it fits.
    pub(crate) fn to_scaled_i128(self, places: i32) -> Option<i128> {
        let shift = i32::from(self.exponent) + places;
        let magnitude = if shift >= 0 {
            self.coefficient.checked_mul(power(shift as u32)?)?
        } else {
            power(shift.unsigned_abs()).map_or(0, |power| self.coefficient / power)
        };
        let magnitude = i128::try_from(magnitude).ok()?;
        Some(if self.negative { -magnitude } else { magnitude })
    }

    /// The absolute value.
    pub fn abs(&self) -> Decimal {
        Decimal {
            negative: false,
            ..*self
        }
    }

    /// The negated value.
    pub fn negate(&self) -> Decimal {
        Decimal {
            negative: !self.negative && self.coefficient != 0,
            ..*self
        }
    }

    /// Sum; `None` on overflow.
    pub fn add(&self, other: &Decimal) -> Option<Decimal> {
        let (high, low) = if self.exponent >= other.exponent {
            (self, other)
        } else {
            (other, self)
        };
        if high.coefficient == 0 {
            return Decimal::build(low.negative, low.coefficient, low.exponent.into(), EXACT);
        }
        // The higher exponent comes down as far as 37 digits allow; what the lower one then still reaches below is
        // only a sticky remainder under three guard digits.
        let distance = (i32::from(high.exponent) - i32::from(low.exponent)) as u32;
        let lift = distance.min(37u32.saturating_sub(digits(high.coefficient)));
        let raised = high.coefficient * power(lift).unwrap_or(1);
        let exponent = i32::from(high.exponent) - lift as i32;
        let (lowered, rest) = cut(low.coefficient, distance - lift, EXACT);
        if high.negative == low.negative {
            return Decimal::build(high.negative, raised + lowered, exponent, rest);
        }
        match raised.cmp(&lowered) {
            // An inexact remainder takes a part of one more unit away.
            _ if !rest.exact => {
                let flipped = Rest {
                    half: rest.half.reverse(),
                    exact: false,
                };
                Decimal::build(high.negative, raised.checked_sub(lowered + 1)?, exponent, flipped)
            }
            Ordering::Less => Decimal::build(low.negative, lowered - raised, exponent, EXACT),
            _ => Decimal::build(high.negative, raised - lowered, exponent, EXACT),
        }
    }

    /// Difference; `None` on overflow.
    pub fn subtract(&self, other: &Decimal) -> Option<Decimal> {
        self.add(&other.negate())
    }

    /// Product; `None` on overflow.
    pub fn multiply(&self, other: &Decimal) -> Option<Decimal> {
        let negative = self.negative != other.negative;
        let exponent = i32::from(self.exponent) + i32::from(other.exponent);
        if let Some(product) = self.coefficient.checked_mul(other.coefficient) {
            return Decimal::build(negative, product, exponent, EXACT);
        }
        let (a1, a0) = (self.coefficient / LIMB, self.coefficient % LIMB);
        let (b1, b0) = (other.coefficient / LIMB, other.coefficient % LIMB);
        let middle = a1 * b0 + a0 * b1;
        let low = (middle % LIMB) * LIMB + a0 * b0;
        let unit = MAX_COEFFICIENT + 1;
        let high = a1 * b1 + middle / LIMB + low / unit;
        let low = low % unit;
        let drop = digits(high);
        let (kept, rest) = cut(low, drop, EXACT);
        Decimal::build(
            negative,
            high * power(DIGITS - drop)? + kept,
            exponent + drop as i32,
            rest,
        )
    }

    /// Quotient; `None` for a zero divisor and on overflow.
    pub fn divide(&self, other: &Decimal) -> Option<Decimal> {
        if other.coefficient == 0 {
            return None;
        }
        let negative = self.negative != other.negative;
        let ideal = i32::from(self.exponent) - i32::from(other.exponent);
        let divisor = other.coefficient;
        let mut quotient = self.coefficient / divisor;
        let mut remainder = self.coefficient % divisor;
        let mut exponent = ideal;
        while remainder != 0 && quotient <= MAX_COEFFICIENT {
            // Up to four digits a step: a remainder below 10^34 leaves that much room, a quotient too.
            let step = (38 - digits(quotient)).min(4);
            let factor = 10u128.pow(step);
            let wide = remainder * factor;
            quotient = quotient * factor + wide / divisor;
            remainder = wide % divisor;
            exponent -= step as i32;
        }
        if remainder == 0 {
            while exponent < ideal && quotient.is_multiple_of(10) {
                quotient /= 10;
                exponent += 1;
            }
        }
        let rest = Rest {
            half: (remainder * 2).cmp(&divisor),
            exact: remainder == 0,
        };
        Decimal::build(negative, quotient, exponent, rest)
    }

    /// `self - other * floor(self / other)`, the sign of the divisor; `None` for a zero divisor.
    pub fn modulo(&self, other: &Decimal) -> Option<Decimal> {
        let floor = self.divide(other)?.rescale(0, Rounding::Floor)?;
        self.subtract(&other.multiply(&floor)?)
    }

    /// The remainder of the division that truncates, the sign of the dividend; `None` for a zero divisor.
    pub fn remainder(&self, other: &Decimal) -> Option<Decimal> {
        let whole = self.divide(other)?.rescale(0, Rounding::Down)?;
        self.subtract(&other.multiply(&whole)?)
    }

    /// Rounds to `scale` digits after the point. A value with fewer digits gets zeros as far as 34 digits reach.
    pub fn rescale(&self, scale: i32, rounding: Rounding) -> Option<Decimal> {
        if !(-MAX_EXPONENT..=-MIN_EXPONENT).contains(&scale) {
            return None;
        }
        let drop = -scale - i32::from(self.exponent);
        if drop <= 0 {
            let lift = drop
                .unsigned_abs()
                .min(DIGITS.saturating_sub(digits(self.coefficient)));
            let exponent = i32::from(self.exponent) - lift as i32;
            return Decimal::build(self.negative, self.coefficient * power(lift)?, exponent, EXACT);
        }
        let (mut kept, rest) = cut(self.coefficient, drop as u32, EXACT);
        if rounds_up(rounding, self.negative, kept, rest) {
            kept += 1;
        }
        Decimal::build(self.negative, kept, -scale, EXACT)
    }

    fn compare(&self, other: &Decimal) -> Ordering {
        match (self.coefficient == 0, other.coefficient == 0) {
            (true, true) => return Ordering::Equal,
            (true, false) => {
                return if other.negative {
                    Ordering::Greater
                } else {
                    Ordering::Less
                };
            }
            (false, true) => {
                return if self.negative {
                    Ordering::Less
                } else {
                    Ordering::Greater
                };
            }
            (false, false) => {}
        }
        if self.negative != other.negative {
            return if self.negative {
                Ordering::Less
            } else {
                Ordering::Greater
            };
        }
        let magnitude = self.compare_magnitude(other);
        if self.negative {
            magnitude.reverse()
        } else {
            magnitude
        }
    }

    fn compare_magnitude(&self, other: &Decimal) -> Ordering {
        if self.exponent == other.exponent {
            return self.coefficient.cmp(&other.coefficient);
        }
        let top = |value: &Decimal| i32::from(value.exponent) + digits(value.coefficient) as i32;
        top(self).cmp(&top(other)).then_with(|| {
            // Same leading position: the distance is below 34 digits, and the lifted one has as many digits as the other.
            let distance = (i32::from(self.exponent) - i32::from(other.exponent)).unsigned_abs();
            let factor = power(distance).unwrap_or(1);
            if self.exponent > other.exponent {
                self.coefficient.saturating_mul(factor).cmp(&other.coefficient)
            } else {
                self.coefficient.cmp(&other.coefficient.saturating_mul(factor))
            }
        })
    }
}

/// Cuts `count` digits off and tells what they were worth; `below` is what had been cut off before.
fn cut(coefficient: u128, count: u32, below: Rest) -> (u128, Rest) {
    if count == 0 {
        return (coefficient, below);
    }
    let Some(unit) = power(count) else {
        return (
            0,
            Rest {
                half: Ordering::Less,
                exact: below.exact && coefficient == 0,
            },
        );
    };
    let remainder = coefficient % unit;
    let half = remainder.cmp(&(unit / 2));
    let half = if half == Ordering::Equal && !below.exact {
        Ordering::Greater
    } else {
        half
    };
    (
        coefficient / unit,
        Rest {
            half,
            exact: below.exact && remainder == 0,
        },
    )
}

fn rounds_up(rounding: Rounding, negative: bool, kept: u128, rest: Rest) -> bool {
    if rest.exact {
        return false;
    }
    match rounding {
        Rounding::HalfEven => {
            rest.half == Ordering::Greater || (rest.half == Ordering::Equal && kept % 2 == 1)
        }
        Rounding::HalfUp => rest.half != Ordering::Less,
        Rounding::HalfDown => rest.half == Ordering::Greater,
        Rounding::Up => true,
        Rounding::Down => false,
        Rounding::Floor => negative,
        Rounding::Ceiling => !negative,
    }
}

fn digits(coefficient: u128) -> u32 {
    coefficient.checked_ilog10().map_or(0, |log| log + 1)
}

/// A power of ten that fits.
fn power(exponent: u32) -> Option<u128> {
    10u128.checked_pow(exponent)
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other)
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Decimal {
            coefficient: value.unsigned_abs().into(),
            exponent: 0,
            negative: value < 0,
        }
    }
}

impl From<usize> for Decimal {
    fn from(value: usize) -> Self {
        Decimal {
            coefficient: value as u128,
            exponent: 0,
            negative: false,
        }
    }
}
