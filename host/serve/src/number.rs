//! Numbers in requests: `10`, `10.0` and `"10"` are the same.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// Maximum time limit. Longer ones are reduced to it.
const MAX_TIME: Duration = Duration::from_hours(24);

/// A finite time in seconds. 0 or less means no time, except that it means no limit
/// in `cell_timeout`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Seconds(pub(crate) f64);

impl Seconds {
    /// The time as a limit, between a millisecond and a day. `None` if it is 0 or less.
    pub(crate) fn limit(self) -> Option<Duration> {
        let limit = Duration::try_from_secs_f64(self.0).unwrap_or(if self.0 > 0.0 {
            MAX_TIME
        } else {
            Duration::ZERO
        });
        (!limit.is_zero()).then(|| limit.clamp(Duration::from_millis(1), MAX_TIME))
    }
}

/// A number of mebibytes. 0 or less means everything that is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mebibytes(pub(crate) i64);

impl Mebibytes {
    /// The limit in bytes, if there is one.
    pub(crate) fn limit(self) -> Option<u64> {
        let number = u64::try_from(self.0).ok().filter(|number| *number > 0);
        number.map(|number| number.saturating_mul(1 << 20))
    }
}

struct Number(&'static str);

impl Visitor<'_> for Number {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
        Ok(value)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
        let number = text
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite());
        number.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Number("a number of seconds")).map(Self)
    }
}

impl<'de> Deserialize<'de> for Mebibytes {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let expected = Number("a whole number of megabytes");
        let number = d.deserialize_any(Number(expected.0))?;
        if number.fract() != 0.0 {
            return Err(D::Error::invalid_value(
                Unexpected::Float(number),
                &expected,
            ));
        }
        Ok(Self(number as i64))
    }
}

impl JsonSchema for Seconds {
    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number"})
    }
}

impl JsonSchema for Mebibytes {
    fn schema_name() -> Cow<'static, str> {
        "Mebibytes".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_as_the_original_reads_them() {
        let read = |text: &str| serde_json::from_str::<Seconds>(text).map(|seconds| seconds.0);
        for (text, value) in [
            ("10", 10.0),
            ("0.25", 0.25),
            ("-1", -1.0),
            ("\"3\"", 3.0),
            ("1e300", 1e300),
        ] {
            assert_eq!(read(text).unwrap(), value, "{text}");
        }
        for text in ["null", "true", "\"ten\"", "\"nan\"", "NaN", "[1]", "\"\""] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_limit_is_between_a_millisecond_and_a_day_or_no_time() {
        let limit = |seconds: f64| Seconds(seconds).limit();
        assert_eq!(limit(2.5), Some(Duration::from_millis(2_500)));
        assert_eq!(limit(1e-9), Some(Duration::from_millis(1)));
        assert_eq!(limit(1e300), Some(MAX_TIME));
        assert_eq!(limit(0.0), None);
        assert_eq!(limit(-5.0), None);
    }

    #[test]
    fn megabytes_are_whole_and_nothing_or_less_is_everything() {
        let read = |text: &str| serde_json::from_str::<Mebibytes>(text);
        assert_eq!(read("1024").unwrap().limit(), Some(1 << 30));
        assert_eq!(read("\"64\"").unwrap().limit(), Some(64 << 20));
        assert_eq!(read("2.0").unwrap().limit(), Some(2 << 20));
        assert_eq!(read("-1").unwrap().limit(), None);
        assert_eq!(read("0").unwrap().limit(), None);
        assert_eq!(read("9223372036854775807").unwrap().limit(), Some(u64::MAX));
        assert!(read("1.5").is_err());
        assert!(read("null").is_err());
    }
}
