//! Plain data as `python/values.py` writes it, and Python's equality of two such values.
//!
//! Equality is that of keys: numbers of equal value have one key whatever their type, and sets and dictionaries are
//! sorted. Types that need more (a `Decimal`, two `Counter`s) are left to the judge, an interpreter.

use num_bigint::BigInt;
use num_traits::{FromPrimitive, Num, Zero};
use rlf_plugin::serde_json::Value;

/// A key that two values share exactly if Python calls them equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    None,
    Ellipsis,
    Number(Number),
    Text(String),
    /// Text with halves of surrogate pairs, encoded as UTF-8 would.
    Surrogates(Vec<u8>),
    Bytes(Vec<u8>),
    List(Vec<Key>),
    Tuple(Vec<Key>),
    Set(Vec<Key>),
    Dict(Vec<(Key, Key)>),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Number {
    Whole(BigInt),
    /// The bits of a float that is not a whole number.
    Fraction(u64),
    Complex(Box<(Number, Number)>),
}

/// Properties of a value besides its key.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Traits {
    /// True if it contains a NaN, which equals no value from elsewhere.
    nan: bool,
    /// True if it is a mapping or view that equals a plain one with the same items, but compares differently with its
    /// own type.
    dictlike: bool,
}

/// A value that was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plain {
    key: Key,
    traits: Traits,
}

/// The reason why data cannot be read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Unread {
    /// The data does not have the form that `values.py` writes.
    Malformed,
    /// The type's equality is left to Python.
    Judge,
}

impl Plain {
    pub(crate) fn read(data: &Value) -> Result<Self, Unread> {
        let mut traits = Traits::default();
        let key = key(data, &mut traits)?;
        Ok(Self { key, traits })
    }

    /// `self == other`, if it can be decided here.
    pub(crate) fn equals(&self, other: &Self) -> Option<bool> {
        if self.traits.nan || other.traits.nan {
            return Some(false);
        }
        if self.traits.dictlike && other.traits.dictlike {
            return None;
        }
        Some(self.key == other.key)
    }

    /// `bool(self)`.
    pub(crate) fn is_true(&self) -> bool {
        match &self.key {
            Key::None => false,
            Key::Ellipsis | Key::Surrogates(_) => true,
            Key::Number(number) => *number != Number::Whole(BigInt::zero()),
            Key::Text(text) => !text.is_empty(),
            Key::Bytes(bytes) => !bytes.is_empty(),
            Key::List(items) | Key::Tuple(items) | Key::Set(items) => !items.is_empty(),
            Key::Dict(items) => !items.is_empty(),
        }
    }
}

fn key(data: &Value, traits: &mut Traits) -> Result<Key, Unread> {
    let list = match data {
        Value::Null => return Ok(Key::None),
        Value::Bool(truth) => return Ok(whole(u8::from(*truth))),
        Value::Number(number) => return Ok(whole(number.as_i64().ok_or(Unread::Malformed)?)),
        Value::String(text) => return Ok(Key::Text(text.clone())),
        Value::Array(list) => list,
        Value::Object(_) => return Err(Unread::Malformed),
    };
    let (tag, items) = list.split_first().ok_or(Unread::Malformed)?;
    let tag = tag.as_str().ok_or(Unread::Malformed)?;
    Ok(match (tag, items) {
        ("i", [digits]) => {
            let digits = text(digits)?.replacen("0x", "", 1);
            let number = BigInt::from_str_radix(&digits, 16).map_err(|_| Unread::Malformed)?;
            Key::Number(Number::Whole(number))
        }
        ("f", [bits]) => Key::Number(float(bits, traits)?),
        ("c", [real, imaginary]) => {
            let parts = (float(real, traits)?, float(imaginary, traits)?);
            Key::Number(if parts.1 == Number::Whole(BigInt::zero()) {
                parts.0
            } else {
                Number::Complex(Box::new(parts))
            })
        }
        ("e", []) => Key::Ellipsis,
        ("S", [data]) => Key::Surrogates(bytes(data)?),
        ("b" | "B", [data]) => Key::Bytes(bytes(data)?),
        ("l", items) => Key::List(keys(items, traits)?),
        ("t", items) => Key::Tuple(keys(items, traits)?),
        ("s" | "z" | "k", items) => {
            traits.dictlike |= tag == "k";
            let mut items = keys(items, traits)?;
            items.sort_unstable();
            items.dedup();
            Key::Set(items)
        }
        ("d" | "D" | "O" | "C", items) => {
            traits.dictlike |= tag != "d";
            let (pairs, []) = items.as_chunks::<2>() else {
                return Err(Unread::Malformed);
            };
            let pair = |[name, value]: &[Value; 2]| Ok((key(name, traits)?, key(value, traits)?));
            let mut pairs = pairs.iter().map(pair).collect::<Result<Vec<_>, _>>()?;
            pairs.sort_unstable();
            pairs.dedup_by(|later, earlier| later.0 == earlier.0);
            Key::Dict(pairs)
        }
        (
            "q" | "r" | "m" | "F" | "dt" | "da" | "ti" | "td" | "U" | "P" | "v" | "w" | "I" | "E"
            | "o",
            _,
        ) => return Err(Unread::Judge),
        _ => return Err(Unread::Malformed),
    })
}

fn keys(items: &[Value], traits: &mut Traits) -> Result<Vec<Key>, Unread> {
    items.iter().map(|item| key(item, traits)).collect()
}

fn whole(number: impl Into<BigInt>) -> Key {
    Key::Number(Number::Whole(number.into()))
}

fn text(data: &Value) -> Result<&str, Unread> {
    data.as_str().ok_or(Unread::Malformed)
}

fn float(data: &Value, traits: &mut Traits) -> Result<Number, Unread> {
    let bits = u64::from_str_radix(text(data)?, 16).map_err(|_| Unread::Malformed)?;
    let number = f64::from_bits(bits);
    traits.nan |= number.is_nan();
    Ok(if number.fract() == 0.0 {
        Number::Whole(BigInt::from_f64(number).ok_or(Unread::Malformed)?)
    } else {
        Number::Fraction(bits)
    })
}

fn bytes(data: &Value) -> Result<Vec<u8>, Unread> {
    let (digits, []) = text(data)?.as_bytes().as_chunks::<2>() else {
        return Err(Unread::Malformed);
    };
    let byte = |pair: &[u8; 2]| {
        let pair = std::str::from_utf8(pair).map_err(|_| Unread::Malformed)?;
        u8::from_str_radix(pair, 16).map_err(|_| Unread::Malformed)
    };
    digits.iter().map(byte).collect()
}

/// The value with lists instead of tuples, at every depth: JSON has no tuples, so a row in JSON cannot require one.
pub(crate) fn without_tuples(data: &Value) -> Value {
    match data {
        Value::Array(list) => {
            let mut list: Vec<Value> = list.iter().map(without_tuples).collect();
            if let Some(tag @ Value::String(_)) = list.first_mut()
                && *tag == "t"
            {
                *tag = "l".into();
            }
            Value::Array(list)
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
