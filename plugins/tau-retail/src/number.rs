//! Numbers as Python computes them: prices and balances become text that is hashed, so the difference between `100`
//! and `100.0` matters.

use rlf_plugin::serde_json;

/// A whole number or a float. A whole number beyond 128 bits becomes a float.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Whole(i128),
    Float(f64),
}

/// The reason why no result exists, in Python's words.
pub(crate) type NumberError = &'static str;

const DIVISION_BY_ZERO: NumberError = "division by zero";
const TOO_LARGE: NumberError = "int too large to convert to float";

impl Number {
    pub(crate) const ZERO: Self = Self::Whole(0);

    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Float(float) => float,
        }
    }

    /// One operation: on whole numbers if both are whole and the result fits, else on floats.
    fn combine(
        self,
        other: Self,
        whole: fn(i128, i128) -> Option<i128>,
        float: fn(f64, f64) -> f64,
    ) -> Self {
        if let (Self::Whole(a), Self::Whole(b)) = (self, other)
            && let Some(result) = whole(a, b)
        {
            return Self::Whole(result);
        }
        Self::Float(float(self.to_f64(), other.to_f64()))
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        self.combine(other, i128::checked_add, |a, b| a + b)
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        self.combine(other, i128::checked_sub, |a, b| a - b)
    }

    pub(crate) fn times(self, other: Self) -> Self {
        self.combine(other, i128::checked_mul, |a, b| a * b)
    }

    /// Always a float.
    pub(crate) fn divide(self, other: Self) -> Result<Self, NumberError> {
        if other.is_zero() {
            return Err(DIVISION_BY_ZERO);
        }
        Ok(Self::Float(self.to_f64() / other.to_f64()))
    }

    /// Rounds the quotient down.
    pub(crate) fn floor_divide(self, other: Self) -> Result<Self, NumberError> {
        if other.is_zero() {
            return Err(DIVISION_BY_ZERO);
        }
        let whole = |a: i128, b: i128| {
            let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?);
            Some(quotient - i128::from(rest != 0 && (rest < 0) != (b < 0)))
        };
        Ok(self.combine(other, whole, |a, b| (a / b).floor()))
    }

    pub(crate) fn power(self, exponent: Self) -> Result<Self, NumberError> {
        if self.is_zero() && exponent.to_f64() < 0.0 {
            return Err("zero to a negative power");
        }
        let whole = |a: i128, b: i128| a.checked_pow(u32::try_from(b).ok()?);
        match self.combine(exponent, whole, f64::powf) {
            Self::Float(float) if float.is_nan() => Err("the result is not a real number"),
            Self::Float(float) if float.is_infinite() => Err(TOO_LARGE),
            result => Ok(result),
        }
    }

    pub(crate) fn negate(self) -> Self {
        match self {
            Self::Whole(whole) => whole
                .checked_neg()
                .map_or(Self::Float(-(whole as f64)), Self::Whole),
            Self::Float(float) => Self::Float(-float),
        }
    }

    pub(crate) fn absolute(self) -> Self {
        match self {
            Self::Whole(whole) if whole < 0 => self.negate(),
            Self::Whole(_) => self,
            Self::Float(float) => Self::Float(float.abs()),
        }
    }

    fn is_zero(self) -> bool {
        self.to_f64() == 0.0
    }

    pub(crate) fn is_positive(self) -> bool {
        self.to_f64() > 0.0
    }

    pub(crate) fn less_than(self, other: Self) -> bool {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a < b,
            _ => self.to_f64() < other.to_f64(),
        }
    }

    /// Rounds the exact binary value to cents, ties to even. A whole number stays whole.
    pub(crate) fn round_cents(self) -> Self {
        match self {
            Self::Float(float) if float.is_finite() => {
                Self::Float(format!("{float:.2}").parse().unwrap_or(float))
            }
            other => other,
        }
    }
}

impl From<&serde_json::Number> for Number {
    fn from(number: &serde_json::Number) -> Self {
        let whole = number.as_i64().map(i128::from);
        match whole.or_else(|| number.as_u64().map(i128::from)) {
            Some(whole) => Self::Whole(whole),
            None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }
}

impl From<Number> for serde_json::Value {
    fn from(number: Number) -> Self {
        if let Number::Whole(whole) = number
            && let Ok(whole) = i64::try_from(whole)
        {
            return whole.into();
        }
        number.to_f64().into()
    }
}
