//! Counts of calls, of their ends and of their time. They are kept by tool and by reward, and read for metrics and for
//! the check of health.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rlf_dialogue::tool::{Ended, Fault};
use rlf_sandbox::FilesReport;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Minimum number of calls for a meaningful share of traps.
pub const MIN_CALLS_FOR_HEALTH: u64 = 20;

/// Counters that calls on any thread increase.
#[derive(Debug, Default)]
pub struct CallCounters {
    ended: [AtomicU64; Ended::ALL.len()],
    infrastructure: AtomicU64,
    retried: AtomicU64,
    cached: AtomicU64,
    host_writes: AtomicU64,
    host_bytes_written: AtomicU64,
    wall_us: AtomicU64,
}

impl CallCounters {
    /// Counts a call that ended.
    pub fn count(&self, ended: Ended, fault: Fault, wall: Duration) {
        self.ended[ended as usize].fetch_add(1, Relaxed);
        if fault == Fault::Infrastructure {
            self.infrastructure.fetch_add(1, Relaxed);
        }
        self.wall_us.fetch_add(wall.as_micros() as u64, Relaxed);
    }

    /// Counts a call that is retried.
    pub fn count_retry(&self) {
        self.retried.fetch_add(1, Relaxed);
    }

    /// Counts a call that was answered from the cache.
    pub fn count_cached(&self) {
        self.cached.fetch_add(1, Relaxed);
    }

    /// Counts what a call wrote to a directory of the host.
    pub fn count_host_writes(&self, files: &FilesReport) {
        if files.host_writes > 0 {
            self.host_writes.fetch_add(files.host_writes, Relaxed);
            self.host_bytes_written
                .fetch_add(files.host_bytes_written, Relaxed);
        }
    }

    /// The current counts.
    pub fn snapshot(&self) -> CallCounts {
        CallCounts {
            ended: std::array::from_fn(|index| self.ended[index].load(Relaxed)),
            infrastructure: self.infrastructure.load(Relaxed),
            retried: self.retried.load(Relaxed),
            cached: self.cached.load(Relaxed),
            host_writes: self.host_writes.load(Relaxed),
            host_bytes_written: self.host_bytes_written.load(Relaxed),
            wall: Duration::from_micros(self.wall_us.load(Relaxed)),
        }
    }
}

/// The counts at one moment. They serialise as one flat object: every way to end that occurred, by name, then
/// `infrastructure`, `retried`, `cached`, the writes to directories of the host if there were any, and `wall_s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallCounts {
    ended: [u64; Ended::ALL.len()],
    /// Calls that ended in an infrastructure failure, and so excluded a trajectory.
    pub infrastructure: u64,
    /// Calls that were retried.
    pub retried: u64,
    /// Calls answered from the cache of results.
    pub cached: u64,
    /// Operations that created, wrote, moved, changed or removed something in a directory of the host.
    pub host_writes: u64,
    /// Bytes written to files there.
    pub host_bytes_written: u64,
    /// Wall-clock time of all calls added up, queueing included.
    pub wall: Duration,
}

impl CallCounts {
    /// The number of calls that ended this way.
    pub fn ended(&self, ended: Ended) -> u64 {
        self.ended[ended as usize]
    }

    /// The number of calls, without those that were cancelled.
    pub fn total(&self) -> u64 {
        self.ended.iter().sum::<u64>() - self.ended(Ended::Cancelled)
    }

    /// The share of calls that trapped.
    pub fn trap_share(&self) -> f64 {
        self.ended(Ended::Trap) as f64 / self.total().max(1) as f64
    }

    /// The counts since `earlier`, which is a snapshot of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            ended: std::array::from_fn(|i| self.ended[i].saturating_sub(earlier.ended[i])),
            infrastructure: self.infrastructure.saturating_sub(earlier.infrastructure),
            retried: self.retried.saturating_sub(earlier.retried),
            cached: self.cached.saturating_sub(earlier.cached),
            host_writes: self.host_writes.saturating_sub(earlier.host_writes),
            host_bytes_written: self
                .host_bytes_written
                .saturating_sub(earlier.host_bytes_written),
            wall: self.wall.saturating_sub(earlier.wall),
        }
    }

    /// Fails if a plugin with these counts traps too often to continue.
    pub fn check_health(
        &self,
        plugin: &str,
        max_trap_share: f64,
        last_trap: Option<String>,
    ) -> Result<(), Unhealthy> {
        if self.total() < MIN_CALLS_FOR_HEALTH || self.trap_share() <= max_trap_share {
            return Ok(());
        }
        Err(Unhealthy {
            plugin: plugin.into(),
            traps: self.ended(Ended::Trap),
            calls: self.total(),
            max_trap_share,
            last_trap: last_trap.unwrap_or_default(),
        })
    }
}

impl std::ops::Add for CallCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            ended: std::array::from_fn(|i| self.ended[i] + other.ended[i]),
            infrastructure: self.infrastructure + other.infrastructure,
            retried: self.retried + other.retried,
            cached: self.cached + other.cached,
            host_writes: self.host_writes + other.host_writes,
            host_bytes_written: self.host_bytes_written + other.host_bytes_written,
            wall: self.wall + other.wall,
        }
    }
}

impl Serialize for CallCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for ended in Ended::ALL
            .into_iter()
            .filter(|ended| self.ended(*ended) > 0)
        {
            map.serialize_entry(ended.as_str(), &self.ended(ended))?;
        }
        map.serialize_entry("infrastructure", &self.infrastructure)?;
        map.serialize_entry("retried", &self.retried)?;
        map.serialize_entry("cached", &self.cached)?;
        if self.host_writes > 0 {
            map.serialize_entry("host_writes", &self.host_writes)?;
            map.serialize_entry("host_bytes_written", &self.host_bytes_written)?;
        }
        map.serialize_entry("wall_s", &self.wall.as_secs_f64())?;
        map.end()
    }
}

/// The error of a plugin that traps too often.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "plugin `{plugin}` trapped in {traps} of {calls} calls, more than the {max_trap_share} that \
     is allowed; the last time: {last_trap}. Mend the plugin, or leave it out with \
     `[plugins.{plugin}] enabled = false`"
)]
pub struct Unhealthy {
    /// The plugin.
    pub plugin: String,
    /// Calls that trapped.
    pub traps: u64,
    /// All calls.
    pub calls: u64,
    /// The share that is allowed.
    pub max_trap_share: f64,
    /// The message of the last trap.
    pub last_trap: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(ends: &[(Ended, u64)]) -> CallCounts {
        let counters = CallCounters::default();
        for (ended, times) in ends {
            for _ in 0..*times {
                counters.count(*ended, Fault::Model, Duration::from_micros(3));
            }
        }
        counters.snapshot()
    }

    #[test]
    fn every_way_to_end_has_a_counter_of_its_own() {
        for ended in Ended::ALL {
            let counts = counts(&[(ended, 3)]);
            assert_eq!(counts.ended(ended), 3);
            assert_eq!(
                counts.total(),
                if ended == Ended::Cancelled { 0 } else { 3 }
            );
        }
    }

    #[test]
    fn a_step_is_the_difference_of_two_snapshots() {
        let earlier = counts(&[(Ended::Ok, 2)]);
        let later = counts(&[(Ended::Ok, 5), (Ended::Timeout, 1)]);
        let step = later.since(&earlier);
        assert_eq!(
            (
                step.ended(Ended::Ok),
                step.ended(Ended::Timeout),
                step.total()
            ),
            (3, 1, 4)
        );
        assert_eq!(step + earlier, later);
    }

    #[test]
    fn counts_serialise_flat_and_by_name() {
        assert_eq!(
            serde_json::to_string(&counts(&[(Ended::InvalidArguments, 1), (Ended::Ok, 1)]))
                .unwrap(),
            r#"{"ok":1,"invalid-arguments":1,"infrastructure":0,"retried":0,"cached":0,"wall_s":6e-6}"#
        );
    }

    #[test]
    fn a_plugin_that_traps_too_often_is_named() {
        let few = counts(&[(Ended::Trap, 19)]);
        assert!(
            few.check_health("x", 0.1, None).is_ok(),
            "too few calls to judge"
        );
        let sound = counts(&[(Ended::Trap, 2), (Ended::Ok, 18)]);
        assert!(
            sound.check_health("x", 0.1, None).is_ok(),
            "2 of 20 is the allowed share"
        );
        let broken = counts(&[(Ended::Trap, 3), (Ended::Ok, 17), (Ended::Cancelled, 100)]);
        assert_eq!(
            broken
                .check_health("x", 0.1, Some("unreachable".into()))
                .unwrap_err()
                .to_string(),
            "plugin `x` trapped in 3 of 20 calls, more than the 0.1 that is allowed; the last \
             time: unreachable. Mend the plugin, or leave it out with \
             `[plugins.x] enabled = false`"
        );
    }
}
