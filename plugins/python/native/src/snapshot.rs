//! Starts the module once, with the library and the driver in its file system, and keeps the memory that this leaves.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow};
use wasmtime::{Caller, Config, Engine, Extern, Instance, Linker, Module, Store, TypedFunc, Val};
use wasmtime_wizer::{InstanceState, SnapshotVal, ValType, Wizer};
use wit_component::ComponentEncoder;

use crate::segments;

/// The interface that the module asks its host for.
const PROCESS: &str = "rlf:plugin/process@0.1.0";
/// Does all that is done before the snapshot; its export goes with it.
const SNAPSHOT: &str = "snapshot";
/// The time during the whole build, so that the build gives the same bytes whenever it runs.
pub(crate) const WALL_TIME_S: u64 = 1_735_689_600;

/// A folder on this machine, and where the module finds its `.py` files.
pub(crate) struct Mount<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) path: &'a str,
}

/// A file that the module finds.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) data: Vec<u8>,
}

/// Runs `module` and returns its snapshot as a component. The module finds `files` and those of `mounts`.
pub(crate) fn take(module: &[u8], mounts: &[Mount<'_>], mut files: Vec<File>) -> Result<Vec<u8>> {
    for mount in mounts {
        for file in python_files(mount.folder)? {
            let below = file.strip_prefix(mount.folder)?.to_str();
            let below = below.with_context(|| format!("{} is not UTF-8", file.display()))?;
            let data = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
            let path = format!("{}/{below}", mount.path);
            files.push(File { path, data });
        }
    }
    // A thread has the stack that it is given, and the main one only what the shell allows.
    let snapshot = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(32 << 20)
            .spawn_scoped(scope, || run(module, &files))
            .map(|thread| thread.join().expect("a panic ends the program"))
    })?;
    let snapshot = snapshot.map_err(|error| anyhow!("{error:?}"))?;
    let snapshot = segments::join(&snapshot).context("joining the snapshot's data segments")?;
    ComponentEncoder::default()
        .validate(true)
        .module(&snapshot)
        .and_then(ComponentEncoder::encode)
        .context("making a component of the snapshot")
}

fn run(module: &[u8], files: &[File]) -> wasmtime::Result<Vec<u8>> {
    let mut wizer = Wizer::new();
    wizer.init_func(SNAPSHOT);
    let (shape, instrumented) = wizer.instrument(module)?;
    let mut config = Config::new();
    config.max_wasm_stack(16 << 20);
    config.async_stack_size(18 << 20);
    // It runs for seconds, so what counts is the time to compile it.
    config.cranelift_opt_level(wasmtime::OptLevel::None);
    config.wasm_exceptions(true);
    let engine = Engine::new(&config)?;
    let module = Module::new(&engine, &instrumented)?;
    let mut linker = Linker::new(&engine);
    offer_process(&mut linker)?;
    // What belongs to handles of sessions, of which there are none yet.
    linker.define_unknown_imports_as_traps(&module)?;
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &module)?;
    for file in files {
        stage(&mut store, &instance, &file.path, &file.data)?;
    }
    let start: TypedFunc<(), ()> = instance.get_typed_func(&mut store, SNAPSHOT)?;
    start.call(&mut store, ())?;
    let mut state = State { store, instance };
    pollster::block_on(wizer.snapshot(&shape, &mut state))
}

/// The host's side of `process` while the snapshot is made: nothing random, no time that passes unasked, and what is
/// written is shown.
fn offer_process(linker: &mut Linker<()>) -> wasmtime::Result<()> {
    linker.func_wrap(PROCESS, "wall-now", || WALL_TIME_S * 1_000_000_000)?;
    let ticking = std::sync::atomic::AtomicU64::new(0);
    linker.func_wrap(PROCESS, "monotonic-now", move || {
        ticking.fetch_add(1_000, std::sync::atomic::Ordering::Relaxed)
    })?;
    linker.func_wrap(PROCESS, "random", || 4u64)?;
    linker.func_wrap(PROCESS, "sleep", |_ns: u64| ())?;
    linker.func_wrap(PROCESS, "exit", |code: i32| -> wasmtime::Result<()> {
        Err(wasmtime::Error::msg(format!("it exits with status {code}")))
    })?;
    linker.func_wrap(
        PROCESS,
        "write",
        |mut caller: Caller<'_, ()>, _fd: u32, at: u32, length: u32| -> wasmtime::Result<()> {
            let Some(Extern::Memory(memory)) = caller.get_export("memory") else {
                return Err(wasmtime::Error::msg("the module exports no memory"));
            };
            let end = at as usize + length as usize;
            let text = memory.data(&caller).get(at as usize..end);
            let text =
                text.ok_or_else(|| wasmtime::Error::msg("it writes what is not in its memory"))?;
            eprint!("{}", String::from_utf8_lossy(text));
            Ok(())
        },
    )?;
    Ok(())
}

/// Puts a file into the module's file system.
fn stage(
    store: &mut Store<()>,
    instance: &Instance,
    path: &str,
    data: &[u8],
) -> wasmtime::Result<()> {
    let allocate: TypedFunc<u32, u32> = instance.get_typed_func(&mut *store, "allocate")?;
    let stage: TypedFunc<(u32, u32, u32, u32), u32> =
        instance.get_typed_func(&mut *store, "stage")?;
    let memory = instance.get_memory(&mut *store, "memory");
    let memory = memory.expect("a module that C was compiled to exports its memory");
    let mut put = |bytes: &[u8]| -> wasmtime::Result<(u32, u32)> {
        let size = u32::try_from(bytes.len())?;
        let at = allocate.call(&mut *store, size)?;
        memory.write(&mut *store, at as usize, bytes)?;
        Ok((at, size))
    };
    let (path_at, path_size) = put(path.as_bytes())?;
    let (data_at, data_size) = put(data)?;
    let error = stage.call(&mut *store, (path_at, path_size, data_at, data_size))?;
    if error != 0 {
        wasmtime::bail!("the module's file system refuses {path}: WASI error {error}");
    }
    Ok(())
}

/// All `.py` files below `folder`, in an order that does not depend on the machine.
pub(crate) fn python_files(folder: &Path) -> Result<Vec<PathBuf>> {
    /// Nothing that a sandboxed program could use: tests, and what needs a screen.
    const LEFT_OUT: [&str; 6] = [
        "__pycache__",
        "test",
        "idlelib",
        "tkinter",
        "turtledemo",
        "ensurepip",
    ];
    let mut files = files_below(folder, |name| !LEFT_OUT.contains(&name))?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "py"));
    Ok(files)
}

/// The files of the time zone database in the folder of the package `tzdata`, as the module finds them.
pub(crate) fn time_zones(package: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    for file in files_below(&package.join("zoneinfo"), |_| true)? {
        let data = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        if data.starts_with(b"TZif") {
            let below = file.strip_prefix(package)?.to_str();
            let below = below.with_context(|| format!("{} is not UTF-8", file.display()))?;
            let path = format!("/packages/tzdata/{below}");
            files.push(File { path, data });
        }
    }
    Ok(files)
}

/// The files below a folder, in order. Of its folders, only those that are `wanted` by name are looked into.
fn files_below(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in
            fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?
        {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if !path.is_dir() {
                files.push(path);
            } else if name.is_some_and(&wanted) {
                folders.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The instance that wizer reads.
struct State {
    store: Store<()>,
    instance: Instance,
}

impl InstanceState for State {
    async fn global_get(&mut self, name: &str, _type: ValType) -> SnapshotVal {
        let global = self.instance.get_global(&mut self.store, name);
        match global.map(|global| global.get(&mut self.store)) {
            Some(Val::I32(value)) => SnapshotVal::I32(value),
            Some(Val::I64(value)) => SnapshotVal::I64(value),
            Some(Val::F32(value)) => SnapshotVal::F32(value),
            Some(Val::F64(value)) => SnapshotVal::F64(value),
            other => unreachable!("wizer asks for the global {name}, which is {other:?}"),
        }
    }

    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        let memory = self.instance.get_memory(&mut self.store, name);
        contents(
            memory
                .expect("wizer asks for what it exported")
                .data(&self.store),
        );
    }
}
