//! Record of a call: the part that survives its store, however the call ends.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::limits::Limits;
use crate::report::{LimitReached, Logs, Output, Tee};

/// The record of a call. The guest's host functions write it, and the caller reads it after the store is gone.
pub(crate) struct Record {
    limits: Arc<Limits>,
    pub(crate) stdout: Mutex<Output>,
    pub(crate) stderr: Mutex<Output>,
    pub(crate) logs: Mutex<Logs>,
    tee: Option<Tee>,
    refused_growth: Mutex<Option<LimitReached>>,
    memory_peak: AtomicU64,
    cpu_ns: AtomicU64,
    queued_ns: AtomicU64,
    in_host: AtomicBool,
}

impl Record {
    pub(crate) fn new(limits: Arc<Limits>, tee: Option<Tee>) -> Arc<Self> {
        Arc::new(Self {
            stdout: Mutex::new(Self::nothing(&limits)),
            stderr: Mutex::new(Self::nothing(&limits)),
            logs: Mutex::default(),
            tee,
            refused_growth: Mutex::default(),
            memory_peak: AtomicU64::new(0),
            cpu_ns: AtomicU64::new(0),
            queued_ns: AtomicU64::new(0),
            in_host: AtomicBool::new(false),
            limits,
        })
    }

    pub(crate) fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    /// The observer of its output, if there is one.
    pub(crate) fn tee(&self) -> Option<&Tee> {
        self.tee.as_ref()
    }

    fn nothing(limits: &Limits) -> Output {
        Output::new(usize::try_from(limits.output_bytes).unwrap_or(usize::MAX))
    }

    /// Standard output and standard error since the last call of this function.
    pub(crate) fn take_output(&self) -> [Output; 2] {
        [&self.stdout, &self.stderr].map(|stream| {
            let mut output = stream.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *output, Self::nothing(&self.limits))
        })
    }

    pub(crate) fn take_logs(&self) -> Logs {
        std::mem::take(&mut *self.logs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The last growth of memory or tables that was refused, if any was.
    pub(crate) fn refused_growth(&self) -> Option<LimitReached> {
        self.refused_growth
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn refuse_growth(&self, limit: LimitReached) {
        *self
            .refused_growth
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(limit);
    }

    pub(crate) fn memory_peak(&self) -> u64 {
        self.memory_peak.load(Ordering::Relaxed)
    }

    pub(crate) fn note_memory(&self, bytes: u64) {
        self.memory_peak.fetch_max(bytes, Ordering::Relaxed);
    }

    pub(crate) fn cpu(&self) -> Duration {
        Duration::from_nanos(self.cpu_ns.load(Ordering::Relaxed))
    }

    pub(crate) fn set_cpu(&self, cpu: Duration) {
        self.cpu_ns.store(
            u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
    }

    pub(crate) fn queued(&self) -> Duration {
        Duration::from_nanos(self.queued_ns.load(Ordering::Relaxed))
    }

    pub(crate) fn set_queued(&self, queued: Duration) {
        self.queued_ns.store(
            u64::try_from(queued.as_nanos()).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
    }

    /// True while the guest waits in a host function for something outside.
    pub(crate) fn in_host(&self) -> bool {
        self.in_host.load(Ordering::Relaxed)
    }

    pub(crate) fn set_in_host(&self, inside: bool) {
        self.in_host.store(inside, Ordering::Relaxed);
    }
}
