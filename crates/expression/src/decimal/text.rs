//! Reading and writing decimals.

use std::fmt::{self, Display, Formatter, Write};
use std::str::FromStr;

use super::{DIGITS, Decimal, EXACT, Rest, digits};

/// A text that is not a decimal number, or one beyond the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotADecimal;

impl Display for NotADecimal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("not a decimal number, or beyond the range of 34 digits and exponents up to 6144")
    }
}

impl std::error::Error for NotADecimal {}

impl FromStr for Decimal {
    type Err = NotADecimal;

    /// Reads `[-+]digits[.digits][e[-+]digits]`; `.5` is read too, `5.` is not.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
            Some(at) => (&unsigned[..at], exponent(&unsigned[at + 1..])?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((_, "")) => return Err(NotADecimal),
            Some(parts) => parts,
            None => (mantissa, ""),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(NotADecimal);
        }
        let mut reader = Reader::default();
        whole.bytes().try_for_each(|digit| reader.take(digit, false))?;
        fraction.bytes().try_for_each(|digit| reader.take(digit, true))?;
        let exponent = exponent.checked_add(reader.exponent).ok_or(NotADecimal)?;
        let rest = Rest {
            half: reader.half,
            exact: reader.exact,
        };
        Decimal::build(negative, reader.coefficient, exponent, rest).ok_or(NotADecimal)
    }
}

fn exponent(text: &str) -> Result<i32, NotADecimal> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NotADecimal);
    }
    // Far beyond every range, yet safe to add to.
    let magnitude = digits.parse::<i32>().unwrap_or(i32::MAX).min(1_000_000_000);
    Ok(if text.starts_with('-') {
        -magnitude
    } else {
        magnitude
    })
}

struct Reader {
    coefficient: u128,
    exponent: i32,
    half: std::cmp::Ordering,
    exact: bool,
    cutting: bool,
}

impl Default for Reader {
    fn default() -> Self {
        Reader {
            coefficient: 0,
            exponent: 0,
            half: EXACT.half,
            exact: true,
            cutting: false,
        }
    }
}

impl Reader {
    fn take(&mut self, digit: u8, fraction: bool) -> Result<(), NotADecimal> {
        if !digit.is_ascii_digit() {
            return Err(NotADecimal);
        }
        let digit = digit - b'0';
        if digits(self.coefficient) < DIGITS && !self.cutting {
            self.coefficient = self.coefficient * 10 + u128::from(digit);
            self.exponent = self.exponent.saturating_sub(i32::from(fraction));
            return Ok(());
        }
        if !self.cutting {
            self.cutting = true;
            self.half = digit.cmp(&5);
        } else if digit != 0 && self.half == std::cmp::Ordering::Equal {
            self.half = std::cmp::Ordering::Greater;
        }
        self.exact &= digit == 0;
        self.exponent = self.exponent.saturating_add(i32::from(!fraction));
        Ok(())
    }
}

impl Display for Decimal {
    /// Plain notation, without an exponent.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.negative {
            f.write_char('-')?;
        }
        let text = self.coefficient.to_string();
        let exponent = i32::from(self.exponent);
        if exponent >= 0 {
            f.write_str(&text)?;
            let zeros = if self.coefficient == 0 { 0 } else { exponent };
            return (0..zeros).try_for_each(|_| f.write_char('0'));
        }
        let scale = exponent.unsigned_abs() as usize;
        match text.len().checked_sub(scale) {
            Some(point) if point > 0 => write!(f, "{}.{}", &text[..point], &text[point..]),
            _ => {
                f.write_str("0.")?;
                (text.len()..scale).try_for_each(|_| f.write_char('0'))?;
                f.write_str(&text)
            }
        }
    }
}

impl Decimal {
    /// The number as JSON text: plain where that stays short, with an exponent otherwise.
    pub fn to_json(&self) -> String {
        const PLAIN: i16 = 40;
        if (-PLAIN..=PLAIN).contains(&self.exponent) {
            return self.to_string();
        }
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{}e{}", self.coefficient, self.exponent)
    }
}
