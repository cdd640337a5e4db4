//! Numbers: exact fractions that remember whether a division may have produced endless digits.

use std::fmt;

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{FromPrimitive, One, Signed, ToPrimitive, Zero};

/// Significant digits of a quotient or root that is not a whole number.
pub(crate) const SIGNIFICANT_DIGITS: u32 = 12;

/// Maximum bits of numerator and denominator: about 1,200 decimal digits. It bounds the time of every operation to
/// microseconds.
pub(crate) const MAX_BITS: u64 = 4_000;

/// Decimal digits to which roots and transcendental functions are computed before rounding.
const GUARD_DIGITS: u32 = 30;

/// The reason why a number does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NumberError {
    /// More than [`MAX_BITS`].
    TooLarge,
    DivisionByZero,
    /// An undefined result, in words.
    Undefined(&'static str),
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => f.write_str("the result has more than 1200 digits"),
            Self::DivisionByZero => f.write_str("division by zero"),
            Self::Undefined(what) => f.write_str(what),
        }
    }
}

/// An exact fraction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Number {
    value: BigRational,
    /// A quotient or root was used: shown with [`SIGNIFICANT_DIGITS`] unless it is a whole number.
    divided: bool,
}

type Result<T> = std::result::Result<T, NumberError>;

impl Number {
    fn new(value: BigRational, divided: bool) -> Result<Self> {
        if value.numer().bits() > MAX_BITS || value.denom().bits() > MAX_BITS {
            return Err(NumberError::TooLarge);
        }
        Ok(Self { value, divided })
    }

    pub(crate) fn integer(value: impl Into<BigInt>) -> Result<Self> {
        Self::new(BigRational::from_integer(value.into()), false)
    }

    /// Makes a number from digits, with the number of decimals reduced by the exponent: `12.5e3` is ("125", 1 - 3).
    pub(crate) fn decimal(digits: &str, decimals: i64) -> Result<Self> {
        // Three bits per digit is less than any digit needs; this also stops an exponent in the millions.
        if digits.len() as u64 * 3 > MAX_BITS || decimals.unsigned_abs() * 3 > MAX_BITS {
            return Err(NumberError::TooLarge);
        }
        let coefficient = BigInt::parse_bytes(digits.as_bytes(), 10).unwrap_or_default();
        let power = BigInt::from(10).pow(decimals.unsigned_abs() as u32);
        let value = if decimals > 0 {
            BigRational::new(coefficient, power)
        } else {
            BigRational::from_integer(coefficient * power)
        };
        Self::new(value, false)
    }

    /// Makes a number from a floating-point result, correct to the digits that are shown.
    pub(crate) fn approximate(value: f64) -> Result<Self> {
        let value = BigRational::from_f64(value).ok_or(NumberError::TooLarge)?;
        // Below the smallest step of 12 digits there is only rounding error: sin(pi) is 0.
        if value.abs() < BigRational::new(BigInt::one(), BigInt::from(10).pow(15)) {
            return Self::integer(0);
        }
        Self::new(round_to_decimals(&value, GUARD_DIGITS), true)
    }

    pub(crate) fn to_f64(&self) -> Result<f64> {
        self.value
            .to_f64()
            .filter(|value| value.is_finite())
            .ok_or(NumberError::TooLarge)
    }

    pub(crate) fn add(&self, other: &Self) -> Result<Self> {
        Self::new(&self.value + &other.value, self.divided || other.divided)
    }

    pub(crate) fn subtract(&self, other: &Self) -> Result<Self> {
        Self::new(&self.value - &other.value, self.divided || other.divided)
    }

    pub(crate) fn multiply(&self, other: &Self) -> Result<Self> {
        Self::new(&self.value * &other.value, self.divided || other.divided)
    }

    pub(crate) fn divide(&self, other: &Self) -> Result<Self> {
        if other.value.is_zero() {
            return Err(NumberError::DivisionByZero);
        }
        Self::new(&self.value / &other.value, true)
    }

    /// Rounds the quotient down: -7 // 2 is -4.
    pub(crate) fn floor_divide(&self, other: &Self) -> Result<Self> {
        if other.value.is_zero() {
            return Err(NumberError::DivisionByZero);
        }
        Self::new((&self.value / &other.value).floor(), false)
    }

    /// The remainder of floor division, which has the sign of the divisor.
    pub(crate) fn remainder(&self, other: &Self) -> Result<Self> {
        let quotient = self.floor_divide(other)?;
        self.subtract(&quotient.multiply(other)?)
    }

    pub(crate) fn negate(&self) -> Self {
        Self {
            value: -&self.value,
            divided: self.divided,
        }
    }

    pub(crate) fn absolute(&self) -> Self {
        Self {
            value: self.value.abs(),
            divided: self.divided,
        }
    }

    /// A power: exact for whole exponents; a negative one divides, a fractional one takes a root.
    pub(crate) fn power(&self, exponent: &Self) -> Result<Self> {
        if !exponent.value.is_integer() {
            return self.fractional_power(exponent);
        }
        let exponent = exponent.value.numer();
        if self.value.is_zero() && exponent.is_negative() {
            return Err(NumberError::DivisionByZero);
        }
        let divided = self.divided || exponent.is_negative();
        let unit = self.value.is_zero() || self.value.abs().is_one();
        let exponent = if unit {
            // Only the exponent's parity matters, however large it is.
            i32::from(exponent.is_odd()) + if exponent.is_zero() { 0 } else { 2 }
        } else {
            exponent.to_i32().ok_or(NumberError::TooLarge)?
        };
        // The result of a base of b bits has at least (b - 1) * e bits: refuse before computing it.
        let bits = self
            .value
            .numer()
            .bits()
            .max(self.value.denom().bits())
            .saturating_sub(1);
        if bits.saturating_mul(u64::from(exponent.unsigned_abs())) > MAX_BITS {
            return Err(NumberError::TooLarge);
        }
        Self::new(self.value.pow(exponent), divided)
    }

    fn fractional_power(&self, exponent: &Self) -> Result<Self> {
        if exponent.value == BigRational::new(BigInt::one(), BigInt::from(2)) {
            return self.square_root();
        }
        if self.value.is_negative() {
            return Err(NumberError::Undefined(
                "a fractional power of a negative number is not real",
            ));
        }
        if self.value.is_zero() {
            return if exponent.value.is_positive() {
                Self::integer(0)
            } else {
                Err(NumberError::DivisionByZero)
            };
        }
        let result = Self::approximate(self.to_f64()?.powf(exponent.to_f64()?))?;
        // 27 ^ (1/3) is 3, which floating point misses slightly: try the nearest whole number.
        let nearest = Self::new(result.value.round(), false)?;
        let error = (&result.value - &nearest.value).abs();
        if !nearest.value.is_zero() && error / nearest.value.abs() < epsilon() {
            Ok(nearest)
        } else {
            Ok(result)
        }
    }

    /// The square root: exact if numerator and denominator are squares.
    pub(crate) fn square_root(&self) -> Result<Self> {
        if self.value.is_negative() {
            return Err(NumberError::Undefined(
                "the square root of a negative number is not real",
            ));
        }
        let (numerator, denominator) = (self.value.numer(), self.value.denom());
        let (root, below) = (numerator.sqrt(), denominator.sqrt());
        if &(&root * &root) == numerator && &(&below * &below) == denominator {
            return Self::new(BigRational::new(root, below), self.divided);
        }
        // sqrt(n / d) = sqrt(n d s^2) / (d s), with s large enough for the guard digits.
        let zeros = GUARD_DIGITS + u32::try_from(denominator.bits() / 3).unwrap_or(0);
        let scale = BigInt::from(10).pow(zeros);
        let root = (numerator * denominator * &scale * &scale).sqrt();
        let exact = BigRational::new(root, denominator * scale);
        Self::new(to_significant_digits(&exact, GUARD_DIGITS), true)
    }

    pub(crate) fn floor(&self) -> Self {
        Self {
            value: self.value.floor(),
            divided: false,
        }
    }

    pub(crate) fn ceiling(&self) -> Self {
        Self {
            value: self.value.ceil(),
            divided: false,
        }
    }

    pub(crate) fn truncate(&self) -> Self {
        Self {
            value: self.value.trunc(),
            divided: false,
        }
    }

    /// Rounds to this many decimals, half to even; negative numbers of decimals round to tens and hundreds.
    pub(crate) fn round(&self, decimals: i32) -> Result<Self> {
        if u64::from(decimals.unsigned_abs()) * 3 > MAX_BITS {
            return Err(NumberError::Undefined("round takes at most 1200 decimals"));
        }
        let power = BigInt::from(10).pow(decimals.unsigned_abs());
        let value = if decimals >= 0 {
            round_to_decimals(&self.value, decimals.unsigned_abs())
        } else {
            let power = BigRational::from_integer(power);
            round_half_even(&(&self.value / &power)) * power
        };
        Self::new(value, false)
    }

    /// The value, if it is a whole number.
    pub(crate) fn to_integer(&self) -> Option<BigInt> {
        self.value.is_integer().then(|| self.value.numer().clone())
    }

    pub(crate) fn compare(&self, other: &Self) -> std::cmp::Ordering {
        self.value.cmp(&other.value)
    }

    pub(crate) fn is_positive(&self) -> bool {
        self.value.is_positive()
    }
}

fn epsilon() -> BigRational {
    BigRational::new(BigInt::one(), BigInt::from(10).pow(SIGNIFICANT_DIGITS + 1))
}

/// Rounds to the nearest whole number, ties to even.
fn round_half_even(value: &BigRational) -> BigRational {
    let (quotient, remainder) = value.numer().div_mod_floor(value.denom());
    let twice: BigInt = remainder * 2;
    let up = match twice.cmp(value.denom()) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => quotient.is_odd(),
    };
    BigRational::from_integer(if up { quotient + 1 } else { quotient })
}

fn round_to_decimals(value: &BigRational, decimals: u32) -> BigRational {
    let power = BigRational::from_integer(BigInt::from(10).pow(decimals));
    round_half_even(&(value * &power)) / power
}

/// Rounds to a number of significant digits, half to even. Digits are lost only here.
fn to_significant_digits(value: &BigRational, digits: u32) -> BigRational {
    if value.is_zero() {
        return value.clone();
    }
    let decimals = i64::from(digits) - 1 - magnitude(value);
    let power = BigRational::from_integer(BigInt::from(10).pow(decimals.unsigned_abs() as u32));
    if decimals >= 0 {
        round_half_even(&(value * &power)) / power
    } else {
        round_half_even(&(value / &power)) * power
    }
}

/// The exponent of the first significant digit: 0 for 1 to 9.99, -1 for 0.1.
fn magnitude(value: &BigRational) -> i64 {
    let (numerator, denominator) = (value.numer().magnitude(), value.denom().magnitude());
    // The difference of the lengths is the exponent or one more.
    let length = |n: &num_bigint::BigUint| n.to_string().len() as i64;
    let estimate = length(numerator) - length(denominator);
    let ten = num_bigint::BigUint::from(10_u32);
    let shift = ten.pow(estimate.unsigned_abs() as u32);
    let at_least = if estimate >= 0 {
        *numerator >= denominator * shift
    } else {
        numerator * shift >= *denominator
    };
    if at_least { estimate } else { estimate - 1 }
}

/// Shown without exponent and without trailing zeros.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value.is_integer() {
            return write!(f, "{}", self.value.numer());
        }
        let shown = if self.divided {
            // Digits left of the point are never lost.
            let whole = u32::try_from(magnitude(&self.value) + 1).unwrap_or(0);
            to_significant_digits(&self.value, SIGNIFICANT_DIGITS.max(whole))
        } else {
            self.value.clone()
        };
        // The denominator is 2^a 5^b now: max(a, b) decimals show it exactly.
        let count = |factor: u32| {
            let factor = BigInt::from(factor);
            let mut rest = shown.denom().clone();
            let mut times = 0_u32;
            while (&rest % &factor).is_zero() {
                rest /= &factor;
                times += 1;
            }
            times
        };
        let decimals = count(2).max(count(5)) as usize;
        let scaled = (&shown * BigRational::from_integer(BigInt::from(10).pow(decimals as u32)))
            .to_integer();
        let digits = scaled.magnitude().to_string();
        let digits = format!("{digits:0>width$}", width = decimals + 1);
        let (whole, fraction) = digits.split_at(digits.len() - decimals);
        let sign = if scaled.is_negative() { "-" } else { "" };
        if fraction.is_empty() {
            write!(f, "{sign}{whole}")
        } else {
            write!(f, "{sign}{whole}.{fraction}")
        }
    }
}
