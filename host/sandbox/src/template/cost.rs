//! Cost of a fresh instance of a component, measured.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::call::{BoxFuture, CallSpec};
use super::loaded::Template;
use crate::limits::Limits;
use crate::report::Stopped;

/// Instances that are alive together while their memory is measured.
const SIDE_BY_SIDE: u64 = 16;
/// Deadline for making that many instances: longer than any machine needs.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Cost of one fresh instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct InstanceCost {
    /// Instances that were made, one after another, to measure the time.
    pub measured: usize,
    /// Median wall-clock time of a call that calls nothing: it takes a place and memory, makes a store and an instance,
    /// runs `init` if that runs in every call, and gives everything back.
    #[serde(rename = "median_us", serialize_with = "microseconds")]
    pub median: Duration,
    /// Linear memories and tables that it begins with, in bytes: what counts against `memory_bytes`.
    pub memory_bytes: u64,
    /// Memory of the machine that one live instance takes for itself, in bytes: pages it wrote to, its stack and the
    /// host's records of it, as the mean over several that are alive together. Shared memory is not counted. `None` if
    /// the system does not report it.
    pub own_bytes: Option<u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands in references
fn microseconds<S: serde::Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(value.as_nanos() as f64 / 1e3)
}

impl Template {
    /// Makes fresh instances for about `time` and measures them. Fails if one cannot be made.
    pub fn instance_cost(&self, time: Duration) -> BoxFuture<'_, Result<InstanceCost, Stopped>> {
        Box::pin(async move {
            // Measured first, because memory that earlier instances leave for later ones would hide the cost.
            let own_bytes = self.own_bytes().await;
            let began = Instant::now();
            let mut times = Vec::new();
            let mut memory_bytes = 0;
            while times.is_empty() || began.elapsed() < time {
                let report = self
                    .call(self.spec_with_ample_time(), |_, _| {
                        Box::pin(async { Ok(()) })
                    })
                    .await;
                report.outcome?;
                times.push(report.wall);
                memory_bytes = report.memory_peak;
            }
            times.sort_unstable();
            Ok(InstanceCost {
                measured: times.len(),
                median: times[times.len() / 2],
                memory_bytes,
                own_bytes,
            })
        })
    }

    /// A call with more time than one that does work.
    fn spec_with_ample_time(&self) -> CallSpec {
        CallSpec {
            label: "measuring".to_owned(),
            limits: Some(Limits {
                wall: MAX_WAIT,
                ..Limits::clone(self.limits())
            }),
            ..CallSpec::default()
        }
    }

    async fn own_bytes(&self) -> Option<u64> {
        let room = self.inner.sandbox.pools.levels[0];
        let fitting = room.memory_bytes / self.limits().memory_bytes.max(1);
        let number = SIDE_BY_SIDE.min(u64::from(room.places)).min(fitting) as u32;
        let before = anonymous_bytes()?;
        let (made, released) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let mut calls = JoinSet::new();
        for _ in 0..number {
            let (template, spec) = (self.clone(), self.spec_with_ample_time());
            let (made, released) = (Arc::clone(&made), Arc::clone(&released));
            calls.spawn(async move {
                template
                    .call(spec, |_, _| {
                        Box::pin(async move {
                            made.add_permits(1);
                            // Closed when all instances may end.
                            let _ = released.acquire().await;
                            Ok(())
                        })
                    })
                    .await
                    .outcome
                    .is_ok()
            });
        }
        let all_made = tokio::select! {
            all = tokio::time::timeout(MAX_WAIT / 2, made.acquire_many(number)) => {
                all.is_ok_and(|permits| permits.is_ok())
            }
            // A call that ends before its release could not make its instance.
            _ = calls.join_next() => false,
        };
        let after = anonymous_bytes();
        released.close();
        while calls.join_next().await.is_some() {}
        all_made.then_some(())?;
        Some(after?.saturating_sub(before) / u64::from(number.max(1)))
    }
}

/// Anonymous memory of this process, in bytes: not backed by a file, not shared with another process.
fn anonymous_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Anonymous:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}
