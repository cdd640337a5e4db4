//! Runs calls of untrusted WebAssembly components. No call can stop the host, slow its neighbours, read the machine or
//! differ between two runs.
//!
//! A [`Sandbox`] is made once. It [loads](Sandbox::load) components into [`Template`]s: it checks them, runs `init` once and
//! keeps the memory that it leaves, compiles the component and caches the code. Every [call](Template::call) gets a fresh instance
//! under [`Limits`] and returns a [`CallReport`]: the value or the reason why there is none, the output, the log lines, and
//! the time and memory used.
//!
//! Everything is denied by default. WASI is there for every std guest, but virtual and empty. A guest reads data through the
//! `data` interface, by the names in its [`Grants`]. With [`ScratchFiles`], every call finds an empty directory of its own,
//! in memory. Time and randomness are virtual and seeded per call, unless [`RealSources`] are granted.
//!
//! This crate must not know tools, rewards or models. It knows two parts of the contract in `wit/`: the host interfaces that
//! every plugin may import (`log`, `data`, `process`), and `lifecycle`, because of the snapshot.
//!
//! # Modules
//!
//! Each one uses only those below it.
//!
//! | looking for | module |
//! |---|---|
//! | loading a component, calling it, the report of a call | `template` |
//! | checks of a component, `init`, the snapshot, compiling, the child process for it | `prepare` |
//! | settings ([`SandboxConfig`]), pools, admission of calls | `engine` |
//! | the data of a store, gates, what is linked, how a guest is run to its end | `guest` |
//! | grants of an operator | `grants` |
//! | clocks, randomness, files, output, `log`, `data`, `process` | `wasi` |
//! | the memory limit and the CPU budget of a running guest | `meter/memory.rs`, `meter/cpu.rs` |
//! | the part of a call that survives its store | `record` |
//! | the limits of a call and their defaults | `limits` |
//! | endings, output, log lines, files of a call, as plain data | `report` |
//! | compiled code on disk, and its bound | `cache` |
//! | versions and names of interfaces | `contract`, `bindings` |
//!
//! ```no_run
//! use rlf_sandbox::{
//!     CallSpec, ComponentSource, Grants, Limits, LoadRequest, Pool, Sandbox, SandboxConfig,
//! };
//!
//! # async fn example(bytes: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
//! let sandbox = Sandbox::new(&SandboxConfig::default())?;
//! let template = sandbox.load(&LoadRequest {
//!     name: "adder",
//!     component: ComponentSource::Bytes(bytes),
//!     config_json: "{}",
//!     grants: &Grants::default(),
//!     gates: &[],
//!     limits: Limits::default(),
//!     pool: Pool::Calls,
//! })?;
//! let report = template
//!     .call(CallSpec::default(), |store, instance| {
//!         Box::pin(async move {
//!             let add = instance.get_typed_func::<(u32, u32), (u32,)>(&mut *store, "add")?;
//!             Ok(add.call_async(&mut *store, (1, 2)).await?.0)
//!         })
//!     })
//!     .await;
//! println!("{:?} in {:?}", report.outcome, report.wall);
//! # Ok(()) }
//! ```

pub mod bindings;
mod cache;
mod contract;
mod engine;
mod grants;
mod guest;
mod limits;
mod meter;
mod prepare;
mod record;
mod report;
mod template;
mod wasi;

pub use cache::{CacheUsage, cache_usage, shrink_cache, user_cache};
pub use contract::CONTRACT;
pub use engine::{
    InUse, LEVELS, Pool, PoolLevel, Pools, Reset, Sandbox, SandboxConfig, SandboxError,
    engine_configuration,
};
pub use grants::{Grants, RealSources};
pub use guest::{OpenGate, State};
pub use limits::{Limits, LimitsError, MAX_DURATION};
pub use meter::Caller;
pub use prepare::process as prepare_process;
pub use prepare::{
    Attachment, ComponentFile, ComponentInfo, ComponentSource, InitMode, LoadError, Preparation,
};
pub use report::{
    Captured, Clock, Ending, FilesReport, LimitReached, LogLevel, LogLine, Logs, Output, Stopped,
    Stream, Tee, safe_text,
};
pub use template::{BoxFuture, CallReport, CallSpec, InstanceCost, LoadRequest, Template};
pub use wasi::data::DataError;
pub use wasi::files::{FilesError, ScratchFiles};
