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

mod admission;
pub mod bindings;
mod cache;
mod call;
mod caller;
mod clock;
mod component;
mod cost;
mod cpu;
mod data;
mod ended;
mod engine;
mod files;
mod gate;
mod limits;
mod load;
mod log;
mod memory;
mod output;
mod pace;
mod prepare;
pub mod prepare_process;
mod process;
mod random;
mod record;
mod reset;
mod segments;
mod state;

pub use admission::{LEVELS, Level as PoolLevel, Pool};
pub use call::{BoxFuture, CallReport, CallSpec};
pub use caller::Caller;
pub use component::{CONTRACT, ComponentInfo};
pub use cost::InstanceCost;
pub use data::{DataError, Grants, RealSources};
pub use ended::{Clock, Ended, LimitReached, Stopped};
pub use engine::{InUse, Pools, Sandbox, SandboxConfig, SandboxError, engine_configuration};
pub use files::{FilesReport, ScratchFiles};
pub use gate::Gate;
pub use limits::{LONGEST, Limits};
pub use load::{LoadError, LoadRequest, Preparation, Template};
pub use log::{Level, LogLine, Logs};
pub use output::{Captured, Output, Stream, Tee, safe_text};
pub use prepare::InitMode;
pub use reset::Reset;
pub use state::State;
