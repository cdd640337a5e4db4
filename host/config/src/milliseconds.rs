//! Durations as whole milliseconds, in keys that end in `_ms`.
//!
//! ```
//! #[derive(serde::Deserialize)]
//! struct Client {
//!     #[serde(rename = "timeout_ms", with = "rlf_config::milliseconds")]
//!     timeout: std::time::Duration,
//! }
//! let client: Client = rlf_config::parse("timeout_ms = 250", "demo.toml")?;
//! assert_eq!(client.timeout.as_secs_f64(), 0.25);
//! # Ok::<(), rlf_config::ConfigError>(())
//! ```

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

/// Writes whole milliseconds.
pub fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(value.as_millis()).unwrap_or(u64::MAX))
}

/// Reads whole milliseconds.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}
