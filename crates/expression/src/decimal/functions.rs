//! Roots, powers, exponentials and logarithms: correct to about 32 digits.

use super::{Decimal, Rounding};

impl Decimal {
    /// The nearest binary number, for first guesses.
    fn approximate(&self) -> f64 {
        format!("{}e{}", self.coefficient, self.exponent)
            .parse::<f64>()
            .unwrap_or(0.0)
            * if self.negative { -1.0 } else { 1.0 }
    }

    fn from_f64(value: f64) -> Option<Decimal> {
        if value.is_finite() {
            format!("{value:e}").parse().ok()
        } else {
            None
        }
    }

    /// Square root; `None` below zero.
    pub fn sqrt(&self) -> Option<Decimal> {
        if self.negative {
            return None;
        }
        if self.coefficient == 0 {
            return Some(Decimal::ZERO);
        }
        // The exponent is taken out first: a binary number does not reach as far as a decimal one.
        let shift = self.exponent - self.exponent % 2;
        let base = Decimal {
            exponent: self.exponent - shift,
            ..*self
        };
        let half = Decimal::scaled(5, -1)?;
        let mut root = Decimal::from_f64(base.approximate().sqrt())?;
        for _ in 0..3 {
            root = root.add(&base.divide(&root)?)?.multiply(&half)?;
        }
        let root = Decimal {
            exponent: root.exponent + shift / 2,
            ..root
        };
        let exact = root.rescale(i32::from(-self.exponent).max(0), Rounding::HalfEven)?;
        Some(if exact.multiply(&exact)? == *self {
            exact.trimmed()
        } else {
            root
        })
    }

    /// The exponential function; `None` on overflow.
    pub fn exp(&self) -> Option<Decimal> {
        let limit = Decimal::from(14_200i64);
        if self.abs() > limit {
            return if self.negative { Some(Decimal::ZERO) } else { None };
        }
        // e^x = (e^(x / 2^k))^(2^k), the argument being small enough for a short series.
        let mut halvings = 0u32;
        let mut x = *self;
        let two = Decimal::from(2i64);
        let small = Decimal::scaled(1, -1)?;
        while x.abs() > small {
            x = x.divide(&two)?;
            halvings += 1;
        }
        let mut sum = Decimal::ONE;
        let mut term = Decimal::ONE;
        for n in 1i64..40 {
            term = term.multiply(&x)?.divide(&Decimal::from(n))?;
            let next = sum.add(&term)?;
            if next == sum {
                break;
            }
            sum = next;
        }
        for _ in 0..halvings {
            sum = sum.multiply(&sum)?;
        }
        Some(sum)
    }

    /// The natural logarithm; `None` unless positive.
    pub fn ln(&self) -> Option<Decimal> {
        if self.negative || self.coefficient == 0 {
            return None;
        }
        // ln(c * 10^e) with c in [0.1, 1), then Newton's steps on the exponential.
        let digits = super::digits(self.coefficient) as i32;
        let fraction = Decimal::scaled(self.coefficient as i128, -digits)?;
        let mut guess = Decimal::from_f64(fraction.approximate().ln())?;
        for _ in 0..3 {
            let power = guess.exp()?;
            let step = fraction.subtract(&power)?.divide(&fraction.add(&power)?)?;
            guess = guess.add(&step.multiply(&Decimal::from(2i64))?)?;
        }
        let ten: Decimal = "2.302585092994045684017991454684364".parse().ok()?;
        let tens = Decimal::from(i64::from(i32::from(self.exponent) + digits));
        guess.add(&ten.multiply(&tens)?)
    }

    /// `self` to the power of `exponent`; `None` on overflow and where the result is not a real number.
    pub fn power(&self, exponent: &Decimal) -> Option<Decimal> {
        const LARGEST: u64 = 1_000_000;
        if let Some(whole) = exponent.to_i64().filter(|whole| whole.unsigned_abs() <= LARGEST) {
            let result = self.whole_power(whole.unsigned_abs())?;
            return if whole < 0 {
                Decimal::ONE.divide(&result)
            } else {
                Some(result)
            };
        }
        if self.coefficient == 0 {
            return (!exponent.negative).then_some(Decimal::ZERO);
        }
        self.ln()?.multiply(exponent)?.exp()
    }

    fn whole_power(&self, mut exponent: u64) -> Option<Decimal> {
        let mut base = *self;
        let mut result = Decimal::ONE;
        while exponent > 0 {
            if exponent % 2 == 1 {
                result = result.multiply(&base)?;
            }
            exponent /= 2;
            if exponent > 0 {
                base = base.multiply(&base)?;
            }
        }
        Some(result)
    }
}
