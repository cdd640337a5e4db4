//! The service's metrics, in Prometheus' text format. No label has a value that a client can choose freely.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// The media type of the text format.
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Bounds of the buckets in seconds, from a tenth of a millisecond to five minutes.
const BUCKETS: [f64; 15] = [
    0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RunLabels {
    language: String,
    ended: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LanguageLabels {
    language: String,
}

/// The counters of one service.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_time: Family<RouteLabels, Histogram>,
    runs: Family<RunLabels, Counter>,
    run_time: Family<LanguageLabels, Histogram>,
    run_cpu: Family<LanguageLabels, Counter<f64, AtomicU64>>,
    queue_time: Histogram,
    under_way: Gauge,
    waiting: Gauge,
    connections: Gauge,
    answered: AtomicU64,
}

/// Raises a gauge until it is dropped.
#[derive(Debug)]
pub(crate) struct GaugeGuard(Gauge);

impl GaugeGuard {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("rlf_serve");
        let metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            request_time: Family::new_with_constructor(histogram),
            runs: Family::default(),
            run_time: Family::new_with_constructor(histogram),
            run_cpu: Family::default(),
            queue_time: histogram(),
            under_way: Gauge::default(),
            waiting: Gauge::default(),
            connections: Gauge::default(),
            answered: AtomicU64::new(0),
        };
        registry.register(
            "requests",
            "Requests, by route and status",
            metrics.requests.clone(),
        );
        registry.register_with_unit(
            "request_duration",
            "From the head of a request to its answer",
            Unit::Seconds,
            metrics.request_time.clone(),
        );
        registry.register(
            "runs",
            "Programs and notebooks, by how they ended",
            metrics.runs.clone(),
        );
        registry.register_with_unit(
            "run_duration",
            "Real time of programs and notebooks, without waiting",
            Unit::Seconds,
            metrics.run_time.clone(),
        );
        registry.register_with_unit(
            "run_cpu",
            "CPU time of programs and notebooks",
            Unit::Seconds,
            metrics.run_cpu.clone(),
        );
        registry.register_with_unit(
            "queue_duration",
            "Time that requests waited for their turn",
            Unit::Seconds,
            metrics.queue_time.clone(),
        );
        registry.register(
            "requests_under_way",
            "Requests that are not answered yet",
            metrics.under_way.clone(),
        );
        registry.register(
            "requests_waiting",
            "Requests that wait for their turn",
            metrics.waiting.clone(),
        );
        registry.register(
            "connections",
            "Open connections",
            metrics.connections.clone(),
        );
        Self {
            registry,
            ..metrics
        }
    }

    /// Counts a request as under way, until the guard is dropped.
    pub(crate) fn begins(&self) -> GaugeGuard {
        GaugeGuard::new(&self.under_way)
    }

    /// Counts a request as waiting, until the guard is dropped.
    pub(crate) fn waits(&self) -> GaugeGuard {
        GaugeGuard::new(&self.waiting)
    }

    /// Counts a connection as open, until the guard is dropped.
    pub(crate) fn connects(&self) -> GaugeGuard {
        GaugeGuard::new(&self.connections)
    }

    /// Counts an answered request.
    pub(crate) fn answered(&self, route: &str, status: u16, took: Duration) {
        let route = route.to_owned();
        self.answered.fetch_add(1, Ordering::Relaxed);
        self.request_time
            .get_or_create(&RouteLabels {
                route: route.clone(),
            })
            .observe(took.as_secs_f64());
        self.requests
            .get_or_create(&RequestLabels { route, status })
            .inc();
    }

    /// Adds the time that a request waited.
    pub(crate) fn waited(&self, time: Duration) {
        self.queue_time.observe(time.as_secs_f64());
    }

    /// Counts a program that ended.
    pub(crate) fn ran(&self, language: &str, ended: &str, took: Duration, cpu: Duration) {
        let labels = LanguageLabels {
            language: language.to_owned(),
        };
        self.run_time
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
        self.run_cpu
            .get_or_create(&labels)
            .inc_by(cpu.as_secs_f64());
        let labels = RunLabels {
            language: language.to_owned(),
            ended: ended.to_owned(),
        };
        self.runs.get_or_create(&labels).inc();
    }

    /// Number of requests that are not answered yet.
    pub(crate) fn under_way(&self) -> u64 {
        u64::try_from(self.under_way.get()).unwrap_or_default()
    }

    /// Number of requests answered so far.
    pub(crate) fn total(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// All metrics as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_in_the_text() {
        let metrics = Metrics::new();
        let begun = metrics.begins();
        assert_eq!(metrics.under_way(), 1);
        metrics.answered("/run_code", 200, Duration::from_millis(2));
        metrics.ran(
            "python",
            "completed",
            Duration::from_millis(1),
            Duration::from_millis(1),
        );
        metrics.waited(Duration::ZERO);
        drop(begun);
        let text = metrics.text();
        for line in [
            "rlf_serve_requests_total{route=\"/run_code\",status=\"200\"} 1",
            "rlf_serve_request_duration_seconds_count{route=\"/run_code\"} 1",
            "rlf_serve_runs_total{language=\"python\",ended=\"completed\"} 1",
            "rlf_serve_run_cpu_seconds_total{language=\"python\"} 0.001",
            "rlf_serve_queue_duration_seconds_count 1",
            "rlf_serve_requests_under_way 0",
            "# EOF",
        ] {
            assert!(text.lines().any(|l| l == line), "no `{line}` in:\n{text}");
        }
        assert_eq!(metrics.total(), 1);
        let page = include_str!("../../../docs/serve.md");
        let described = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        for name in described {
            let is_there = [format!("| `{name}"), format!("| `{name}_total")]
                .iter()
                .any(|start| {
                    page.lines().any(|line| {
                        line.strip_prefix(start)
                            .is_some_and(|rest| rest.starts_with(['`', '{']))
                    })
                });
            assert!(is_there, "docs/serve.md does not say what `{name}` is");
        }
    }
}
