//! Components written as text, and functions that call them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rlf_sandbox::{
    CallReport, CallSpec, ComponentSource, Grants, InUse, Limits, LoadError, LoadRequest, Pool,
    RealSources, Sandbox, SandboxConfig, ScratchFiles, Template,
};
use wasmtime::component::{ComponentNamedList, Lift, Lower};

/// A sandbox of a few instances for one test, so that its counters show only that test.
pub(crate) fn sandbox() -> Sandbox {
    sandbox_with(&SandboxConfig {
        instances: Some(8),
        ..SandboxConfig::default()
    })
}

pub(crate) fn sandbox_with(config: &SandboxConfig) -> Sandbox {
    Sandbox::new(config).expect("the machine runs WebAssembly")
}

/// Compiles component text to bytes.
pub(crate) fn component(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"))
}

/// The settings of a load that a test changes.
pub(crate) struct Load<'a> {
    pub(crate) config_json: &'a str,
    pub(crate) limits: Limits,
    pub(crate) data: &'a [(&'a str, PathBuf)],
    pub(crate) files: Option<ScratchFiles>,
    pub(crate) host_directory: Option<PathBuf>,
    pub(crate) real: RealSources,
    pub(crate) pool: Pool,
}

impl Default for Load<'_> {
    fn default() -> Self {
        Self {
            config_json: "{}",
            limits: Limits::default(),
            data: &[],
            files: None,
            host_directory: None,
            real: RealSources::default(),
            pool: Pool::Calls,
        }
    }
}

pub(crate) fn try_load(
    sandbox: &Sandbox,
    bytes: &[u8],
    load: &Load<'_>,
) -> Result<Template, LoadError> {
    let data: BTreeMap<_, _> = load
        .data
        .iter()
        .map(|(name, path)| ((*name).to_owned(), path.clone()))
        .collect();
    sandbox.load(&LoadRequest {
        name: "guest",
        component: ComponentSource::Bytes(bytes),
        config_json: load.config_json,
        gates: &[],
        grants: &Grants {
            data,
            files: load.files.clone(),
            host_directory: load.host_directory.clone(),
            real: load.real,
        },
        limits: load.limits.clone(),
        pool: load.pool,
    })
}

pub(crate) fn load(sandbox: &Sandbox, text: &str, limits: Limits) -> Template {
    try_load(
        sandbox,
        &component(text),
        &Load {
            limits,
            ..Load::default()
        },
    )
    .unwrap_or_else(|error| panic!("{error}"))
}

/// Calls an export with one result.
pub(crate) async fn call<P, R>(
    template: &Template,
    spec: CallSpec,
    export: &'static str,
    parameters: P,
) -> CallReport<R>
where
    P: ComponentNamedList + Lower + Send + Sync + 'static,
    R: Send + Sync + 'static,
    (R,): ComponentNamedList + Lift,
{
    template
        .call(spec, move |store, instance| {
            Box::pin(async move {
                let function = instance.get_typed_func::<P, (R,)>(&mut *store, export)?;
                Ok(function.call_async(&mut *store, parameters).await?.0)
            })
        })
        .await
}

/// The same, from outside any runtime, with default settings.
pub(crate) fn run<P, R>(template: &Template, export: &'static str, parameters: P) -> CallReport<R>
where
    P: ComponentNamedList + Lower + Send + Sync + 'static,
    R: Send + Sync + 'static,
    (R,): ComponentNamedList + Lift,
{
    block_on(call(template, CallSpec::default(), export, parameters))
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
        .block_on(future)
}

/// Fails the test unless the pools are as empty as before and the next guest works. A call that was just dropped may
/// still be ending in a thread of the sandbox.
pub(crate) fn assert_unharmed(sandbox: &Sandbox) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while sandbox.in_use() != InUse::default() && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_eq!(
        sandbox.in_use(),
        InUse::default(),
        "something was not given back"
    );
    let neighbour = load(sandbox, ADDER, Limits::default());
    assert_eq!(
        run::<_, u32>(&neighbour, "add", (40_u32, 2_u32)).outcome,
        Ok(42)
    );
    assert_eq!(sandbox.in_use(), InUse::default());
}

pub(crate) const ADDER: &str = r#"(component
    (core module $m (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
    (core instance $i (instantiate $m))
    (func (export "add") (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $i "add"))))"#;

/// A component of one core module whose functions take and return numbers.
pub(crate) fn plain(module: &str, exports: &str) -> String {
    format!("(component (core module $m {module}) (core instance $i (instantiate $m)) {exports})")
}

/// A memory in its own module, for lowering imports, with an allocator that never frees.
pub(crate) const MEMORY: &str = r#"
    (core module $memory
        (memory (export "memory") 1)
        (global $next (mut i32) (i32.const 1024))
        (func (export "realloc") (param i32 i32 i32 i32) (result i32)
            (local $at i32)
            (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
            (global.set $next (i32.add (local.get $at) (local.get 3)))
            (block $enough
                (br_if $enough (i32.le_u (global.get $next) (i32.mul (memory.size) (i32.const 65536))))
                (br_if $enough (i32.ne (i32.const -1) (memory.grow (i32.add (i32.const 1) (i32.div_u (local.get 3) (i32.const 65536))))))
                unreachable)
            (local.get $at)))
    (core instance $memory (instantiate $memory))
    (alias core export $memory "memory" (core memory $mem))
    (alias core export $memory "realloc" (core func $realloc))"#;

/// Imports of `wasi:io/poll` and `wasi:clocks/monotonic-clock`, lowered as `$now`, `$subscribe` and `$block`.
pub(crate) const CLOCK: &str = r#"
    (import "wasi:io/poll@0.2.0" (instance $poll
        (export "pollable" (type $p (sub resource)))
        (export "[method]pollable.block" (func (param "self" (borrow $p))))))
    (alias export $poll "pollable" (type $pollable))
    (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
        (alias outer 1 $pollable (type $outer))
        (export "pollable" (type $p (eq $outer)))
        (export "now" (func (result u64)))
        (export "subscribe-duration" (func (param "when" u64) (result (own $p))))))
    (core func $now (canon lower (func $clock "now")))
    (core func $subscribe (canon lower (func $clock "subscribe-duration")))
    (core func $block (canon lower (func $poll "[method]pollable.block")))"#;

/// Imports of standard output, lowered as `$stdout` and `$print`; needs [`MEMORY`] before it.
pub(crate) const STDOUT: &str = r#"
    (import "wasi:io/error@0.2.0" (instance $error (export "error" (type (sub resource)))))
    (alias export $error "error" (type $error))
    (import "wasi:io/streams@0.2.0" (instance $streams
        (export "output-stream" (type $out (sub resource)))
        (alias outer 1 $error (type $outer))
        (export "error" (type $e (eq $outer)))
        (type $variant (variant (case "last-operation-failed" (own $e)) (case "closed")))
        (export "stream-error" (type $stream-error (eq $variant)))
        (export "[method]output-stream.blocking-write-and-flush"
            (func (param "self" (borrow $out)) (param "contents" (list u8)) (result (result (error $stream-error)))))))
    (alias export $streams "output-stream" (type $out))
    (import "wasi:cli/stdout@0.2.0" (instance $cli
        (alias outer 1 $out (type $outer))
        (export "output-stream" (type $o (eq $outer)))
        (export "get-stdout" (func (result (own $o))))))
    (core func $stdout (canon lower (func $cli "get-stdout")))
    (core func $print (canon lower (func $streams "[method]output-stream.blocking-write-and-flush") (memory $mem)))"#;

/// A component with a `lifecycle`: `module` has a memory, `realloc`, and `init`, which returns the address of a
/// `result<_, error>`; `before` and `with` add imports; `exports` adds functions.
pub(crate) fn with_init(before: &str, module: &str, with: &str, exports: &str) -> String {
    let error = r#"(variant (case "invalid-arguments" string) (case "not-found" string) (case "denied" string)
        (case "exhausted" string) (case "unavailable" string) (case "cancelled") (case "internal" string))"#;
    format!(
        r#"(component
        {before}
        (core module $m
            {module}
            (global $next (mut i32) (i32.const 4096))
            (func (export "realloc") (param i32 i32 i32 i32) (result i32)
                (global.get $next)
                (global.set $next (i32.add (global.get $next) (i32.and (i32.add (local.get 3) (i32.const 7)) (i32.const -8))))))
        (core instance $i (instantiate $m {with}))
        (type $error-type {error})
        (func $init (param "config" string) (result (result (error $error-type)))
            (canon lift (core func $i "init") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
        (component $shape
            (type $e {error})
            (import "import-type-error" (type $named (eq $e)))
            (import "import-func-init" (func $f (param "config" string) (result (result (error $named)))))
            (type $e2 {error})
            (export $named2 "error" (type $e2))
            (export "init" (func $f) (func (param "config" string) (result (result (error $named2))))))
        (instance $lifecycle (instantiate $shape
            (with "import-type-error" (type $error-type)) (with "import-func-init" (func $init))))
        (export "rlf:plugin/lifecycle@0.1.0" (instance $lifecycle))
        {exports})"#
    )
}
