//! Data of a store: everything that one guest may touch, and nothing else.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::component::ResourceTable;
use wasmtime::{Engine, Store};
use wasmtime_wasi::filesystem::WasiFilesystemView as _;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::grants::RealSources;
use crate::limits::Limits;
use crate::meter::{Caller, CpuMeter, MemoryLimiter, interrupt_by_budget};
use crate::record::Record;
use crate::report::{Output, Stream};
use crate::wasi::clock::{GuestClock, TimeView};
use crate::wasi::data::{DataSet, DataView};
use crate::wasi::files::{Files, HostView, ScratchView};
use crate::wasi::log::LogView;
use crate::wasi::process::ProcessView;
use crate::wasi::random::Randomness;
use crate::wasi::stdout::GuestOutput;

/// A value of a type that this crate does not know.
type Unknown = dyn Any + Send + Sync;

/// The data of a store. Opaque outside this crate: bindings only pass it along.
pub struct State {
    plugin: Arc<str>,
    label: String,
    record: Arc<Record>,
    data: Arc<DataSet>,
    files: Files,
    table: ResourceTable,
    /// Made on first use, because a tool that only computes never needs it.
    wasi: Option<Box<WasiCtx>>,
    memory: MemoryLimiter,
    clock: Arc<GuestClock>,
    randomness: Randomness,
    gates: Arc<[Arc<Unknown>]>,
    gates_open: bool,
    /// Values that gates keep during this call, by type.
    kept: HashMap<TypeId, Box<Unknown>>,
    context: Option<Arc<Unknown>>,
    as_caller: Caller,
}

/// Differences between one guest and others of the same template.
pub(crate) struct Guest {
    pub(crate) plugin: Arc<str>,
    pub(crate) label: String,
    pub(crate) seed: u64,
    pub(crate) data: Arc<DataSet>,
    pub(crate) files: Files,
    /// The gates that it may go through; see [`Gates::opened`](super::Gates::opened).
    pub(crate) gates: Arc<[Arc<Unknown>]>,
    /// Value that the caller of the sandbox passes to gates.
    pub(crate) context: Option<Arc<Unknown>>,
    /// The guest that makes this call, if it is nested.
    pub(crate) caller: Option<Caller>,
    /// Its deadline.
    pub(crate) deadline: Instant,
}

impl State {
    /// Makes a store under all limits of `record`, and the meter that its future must be polled under. `tick` is the
    /// interval of the engine's epochs.
    pub(crate) fn store(
        engine: &Engine,
        guest: Guest,
        record: &Arc<Record>,
        clock: Deadlines,
        tick: Duration,
    ) -> (Store<Self>, Arc<CpuMeter>) {
        let limits = Arc::clone(record.limits());
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.resources as usize);
        let as_caller = Caller::new(guest.caller, guest.deadline, clock.cpu, &limits);
        let meter = Arc::clone(&as_caller.meter);
        let state = Self {
            gates: guest.gates,
            gates_open: false,
            kept: HashMap::new(),
            context: guest.context,
            as_caller,
            plugin: guest.plugin,
            label: guest.label,
            data: guest.data,
            files: guest.files,
            table,
            wasi: None,
            memory: MemoryLimiter::new(Arc::clone(record)),
            clock: GuestClock::new(clock.virtual_time),
            randomness: Randomness::new(guest.seed, limits.random_bytes),
            record: Arc::clone(record),
        };
        let mut store = Store::new(engine, state);
        store.limiter(|state| &mut state.memory);
        store.set_hostcall_fuel(usize::try_from(limits.hostcall_bytes).unwrap_or(usize::MAX));
        store.set_max_component_handles(limits.component_handles as usize);
        interrupt_by_budget(&mut store, Arc::clone(&meter), tick);
        (store, meter)
    }

    /// The gate of this type, if it is open to the plugin.
    pub fn gate<G: Any>(&self) -> Option<&G> {
        let mut gates = self.gates.iter().filter(|_| self.gates_open);
        gates.find_map(|gate| gate.downcast_ref())
    }

    /// Replaces the rest of the guest's CPU time and virtual time, for one call that does several things in turn. The
    /// deadline of the call stays.
    pub fn renew(&self, cpu: Duration, virtual_time: Duration) {
        self.as_caller.meter.renew(cpu);
        self.clock.renew(virtual_time);
    }

    /// The CPU time and the virtual time that the guest has used since the last [`renew`](Self::renew).
    pub fn used(&self) -> (Duration, Duration) {
        (self.as_caller.meter.used_of_budget(), self.clock.used())
    }

    /// Peak size of the guest's memories and tables so far, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.record.memory_peak()
    }

    /// Takes the output since the last call of this function: standard output and standard error. The rest is in the
    /// report of the call.
    pub fn take_output(&self) -> [Output; 2] {
        self.record.take_output()
    }

    /// Opens the gates after `init`, which always runs with closed gates.
    pub(crate) fn open_gates(&mut self) {
        self.gates_open = true;
    }

    /// The value that a gate keeps during this call, made when it is first asked for.
    pub fn kept<T: Any + Send + Sync>(&mut self, make: impl FnOnce(&Self) -> T) -> &mut T {
        // Made from the rest of the state, so it cannot be made inside.
        let mut kept = std::mem::take(&mut self.kept);
        kept.entry(TypeId::of::<T>())
            .or_insert_with(|| Box::new(make(self)));
        self.kept = kept;
        kept_value(&mut self.kept)
    }

    /// The value that the caller of the sandbox passed to gates, if it has this type.
    pub fn context<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.context.as_ref()?).downcast().ok()
    }

    /// The instant at which this call is dropped.
    pub fn deadline(&self) -> Instant {
        self.as_caller.deadline
    }

    /// The limits of this call.
    pub fn limits(&self) -> &Limits {
        self.record.limits()
    }

    /// This call as the caller of nested calls: see [`CallSpec::caller`](crate::CallSpec).
    pub fn as_caller(&self) -> Caller {
        self.as_caller.clone()
    }

    /// Waits for something outside the sandbox. A call whose time ends meanwhile was delayed by the host, not by the
    /// guest.
    pub fn outside<F: Future>(&self, waiting: F) -> impl Future<Output = F::Output> + use<F> {
        let record = Arc::clone(&self.record);
        async move {
            record.set_in_host(true);
            let value = waiting.await;
            record.set_in_host(false);
            value
        }
    }

    /// Gives the guest the machine's clock and entropy, if they are granted. Called after `init`, whose result must not
    /// depend on either.
    pub(crate) fn make_real(&mut self, granted: RealSources) {
        if granted.clock {
            self.clock.make_real();
        }
        if granted.random {
            self.randomness.make_real();
        }
    }

    /// True if the guest holds a stream, a timer or another resource of the host.
    pub(crate) fn holds_handles(&self) -> bool {
        !self.table.is_empty()
    }

    pub(super) fn time(&mut self) -> TimeView<'_> {
        TimeView {
            clock: &self.clock,
            table: &mut self.table,
            record: &self.record,
        }
    }

    pub(super) fn randomness(&mut self) -> &mut Randomness {
        &mut self.randomness
    }

    pub(super) fn log(&mut self) -> LogView<'_> {
        LogView {
            record: &self.record,
            plugin: &self.plugin,
            call: &self.label,
        }
    }

    pub(super) fn data(&mut self) -> DataView<'_> {
        DataView {
            data: &self.data,
            max_read_bytes: self.record.limits().data_read_bytes,
        }
    }

    pub(super) fn process(&mut self) -> ProcessView<'_> {
        ProcessView {
            clock: &self.clock,
            randomness: &mut self.randomness,
            record: &self.record,
        }
    }

    pub(super) fn scratch(&mut self) -> ScratchView<'_> {
        ScratchView {
            scratch: self.files.scratch(),
            clock: &self.clock,
            table: &mut self.table,
        }
    }

    pub(super) fn host_directory(&mut self) -> HostView<'_> {
        HostView {
            directory: self.files.host().cloned(),
            inner: self.filesystem(),
        }
    }
}

/// The value of a type that is known to be kept.
fn kept_value<T: Any>(kept: &mut HashMap<TypeId, Box<Unknown>>) -> &mut T {
    kept.get_mut(&TypeId::of::<T>())
        .and_then(|value| value.downcast_mut())
        .expect("kept under its own type just before")
}

/// Time budgets of one guest: those of a call, or those of `init`.
#[derive(Clone, Copy)]
pub(crate) struct Deadlines {
    pub(crate) virtual_time: Duration,
    pub(crate) cpu: Duration,
}

impl Deadlines {
    pub(crate) fn for_call(limits: &Limits) -> Self {
        Self {
            virtual_time: limits.wall,
            cpu: limits.cpu,
        }
    }

    pub(crate) fn for_init(limits: &Limits) -> Self {
        Self {
            virtual_time: limits.init,
            cpu: limits.init,
        }
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let record = &self.record;
        let ctx = self.wasi.get_or_insert_with(|| {
            // Nothing is inherited: no arguments, environment, files or network.
            let mut builder = WasiCtx::builder();
            builder
                .stdout(GuestOutput::new(Arc::clone(record), Stream::Stdout))
                .stderr(GuestOutput::new(Arc::clone(record), Stream::Stderr))
                .allow_tcp(false)
                .allow_udp(false);
            self.files.preopen(&mut builder);
            Box::new(builder.build())
        });
        WasiCtxView {
            ctx,
            table: &mut self.table,
        }
    }
}
