//! Exact decimals with the operations that questions need: sums, products, whole quotients, comparison.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// `mantissa / 10^scale`, without trailing zeros after the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Decimal {
    mantissa: i128,
    scale: u32,
}

impl Decimal {
    /// `mantissa / 10^scale`.
    pub(crate) fn new(mut mantissa: i128, mut scale: u32) -> Self {
        while scale > 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
        Self { mantissa, scale }
    }

    /// Both mantissas over the larger of the two scales.
    fn aligned(self, other: Self) -> Option<(i128, i128, u32)> {
        let scale = self.scale.max(other.scale);
        let lift = |d: Self| {
            d.mantissa
                .checked_mul(10_i128.checked_pow(scale - d.scale)?)
        };
        Some((lift(self)?, lift(other)?, scale))
    }

    pub(crate) fn add(self, other: Self) -> Option<Self> {
        let (a, b, scale) = self.aligned(other)?;
        Some(Self::new(a.checked_add(b)?, scale))
    }

    pub(crate) fn subtract(self, other: Self) -> Option<Self> {
        let (a, b, scale) = self.aligned(other)?;
        Some(Self::new(a.checked_sub(b)?, scale))
    }

    pub(crate) fn multiply(self, other: Self) -> Option<Self> {
        Some(Self::new(
            self.mantissa.checked_mul(other.mantissa)?,
            self.scale.checked_add(other.scale)?,
        ))
    }

    /// The quotient, rounded down. `None` for a division by zero.
    pub(crate) fn quotient(self, other: Self) -> Option<Self> {
        let (a, b, _) = self.aligned(other)?;
        let towards_zero = a.checked_div(b)?;
        let down = i128::from(a % b != 0 && (a < 0) != (b < 0));
        Some(Self::new(towards_zero - down, 0))
    }

    pub(crate) fn is_negative(self) -> bool {
        self.mantissa < 0
    }
}

impl From<u64> for Decimal {
    fn from(whole: u64) -> Self {
        Self::new(i128::from(whole), 0)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let (a, b, _) = self.aligned(*other)?;
        Some(a.cmp(&b))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative() { "-" } else { "" };
        let digits = format!(
            "{:0>1$}",
            self.mantissa.unsigned_abs(),
            self.scale as usize + 1
        );
        let (whole, fraction) = digits.split_at(digits.len() - self.scale as usize);
        if fraction.is_empty() {
            write!(f, "{sign}{whole}")
        } else {
            write!(f, "{sign}{whole}.{fraction}")
        }
    }
}

impl FromStr for Decimal {
    type Err = ();

    /// Digits with at most one point between them; no sign, no exponent.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (whole, fraction) = text
            .split_once('.')
            .map_or((text, None), |(w, f)| (w, Some(f)));
        let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !is_digits(whole) || fraction.is_some_and(|fraction| !is_digits(fraction)) {
            return Err(());
        }
        let fraction = fraction.unwrap_or("");
        let mantissa = format!("{whole}{fraction}").parse().map_err(|_| ())?;
        Ok(Self::new(mantissa, fraction.len() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        text.parse().expect("a decimal")
    }

    #[test]
    fn text_goes_in_and_out_without_superfluous_zeros() {
        for (given, shown) in [
            ("0", "0"),
            ("9.0", "9"),
            ("0.4", "0.4"),
            ("1425.70", "1425.7"),
            ("007", "7"),
        ] {
            assert_eq!(decimal(given).to_string(), shown);
        }
        assert_eq!(
            decimal("3").subtract(decimal("3.4")).unwrap().to_string(),
            "-0.4"
        );
        for bad in ["", ".", "1.", ".5", "-1", "1e3", "1.2.3", " 1"] {
            assert!(bad.parse::<Decimal>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn arithmetic_is_exact() {
        assert_eq!(
            decimal("68.4").multiply(decimal("5")).unwrap().to_string(),
            "342"
        );
        assert_eq!(
            decimal("0.1").add(decimal("0.2")).unwrap().to_string(),
            "0.3"
        );
        assert_eq!(
            decimal("7.5").quotient(decimal("2")).unwrap().to_string(),
            "3"
        );
        assert_eq!(
            decimal("0")
                .subtract(decimal("7"))
                .unwrap()
                .quotient(decimal("2"))
                .unwrap()
                .to_string(),
            "-4"
        );
        assert_eq!(decimal("1").quotient(decimal("0")), None);
        assert!(decimal("9.5") < decimal("10"));
    }
}
