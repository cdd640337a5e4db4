//! One component, one call: run a stranger's WebAssembly so that nothing it does can stop the host,
//! slow its neighbours, read the machine or differ between two runs.
//!
//! A [`Sandbox`] is made once. It [loads](Sandbox::load) components into [`Template`]s: checked,
//! initialised, the memory that `init` left kept as a snapshot, compiled, cached. Every
//! [call](Template::call) then gets a fresh instance under [`Limits`], and gives a [`CallReport`]:
//! the value or how it ended without one, what was printed and logged, what it used.
//!
//! Deny by default: WASI is there for every std guest, but virtual and empty. Data reaches a guest
//! through the `data` interface, by the names in its [`Grants`]; where they have [`ScratchFiles`],
//! every call finds an empty directory of its own, in memory. Time and randomness are virtual and
//! seeded per call, unless [`RealSources`] are granted.
//!
//! A reader looking for ... finds it in ...
//!
//! - what a call may use: `limits`; how it ended, and what it printed and logged: `report`
//! - the memory limit as it is kept: `meter::memory`; the CPU budget: `meter::cpu`
//! - clocks, randomness, files, output, `log` and `data` as a guest sees them: `wasi`
//! - what an operator allows: `grants`; ways out of the sandbox: `guest::gate`
//! - settings, pools and who gets a place: `engine`
//! - checks, `init`, snapshots and compiling: `prepare`; compiled code on disk: `cache`
//! - loading and calling: `template`
//!
//! Modules depend on each other downwards only, from `template` to `report`.
//!
//! This crate must not know what a tool, a reward or a model is. It knows two things of the
//! contract in `wit/`: the host interfaces that every plugin may import (`log`, `data`), and
//! `lifecycle`, because of the snapshot.
//!
//! ```no_run
//! use rlf_sandbox::{CallSpec, Grants, Limits, LoadRequest, Pool, Sandbox, SandboxConfig};
//!
//! # async fn example(bytes: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
//! let sandbox = Sandbox::new(&SandboxConfig::default())?;
//! let template = sandbox.load(&LoadRequest {
//!     name: "adder",
//!     bytes,
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

pub use contract::CONTRACT;
pub use engine::{
    InUse, LEVELS, Pool, PoolLevel, Pools, Reset, Sandbox, SandboxConfig, SandboxError,
    engine_configuration,
};
pub use grants::{Grants, RealSources};
pub use guest::{OpenGate, State};
pub use limits::{Limits, MAX_DURATION};
pub use meter::Caller;
pub use prepare::process as prepare_process;
pub use prepare::{ComponentInfo, InitMode, LoadError, Preparation};
pub use report::{
    Captured, Clock, Ending, FilesReport, LimitReached, LogLevel, LogLine, Logs, Output, Stopped,
    Stream, Tee, safe_text,
};
pub use template::{BoxFuture, CallReport, CallSpec, InstanceCost, LoadRequest, Template};
pub use wasi::data::DataError;
pub use wasi::files::ScratchFiles;
