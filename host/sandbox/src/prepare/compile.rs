//! Preparing and compiling a component in this process.

use std::borrow::Cow;
use std::time::Instant;

use wasmtime::Engine;

use super::error::LoadError;
use super::job::{Earlier, Entry, InitMode, Job, Made};
use super::segments;
use super::snapshot::{Prepared, prepare};
use super::split::split;
use crate::engine::{Inner, WASMTIME};

/// Runs `init` if there is one, keeps the memory that it leaves, and compiles what is not compiled yet.
pub(crate) fn make(
    inner: &Inner,
    job: &Job<'_>,
    has_init: bool,
    earlier: &Earlier,
) -> Result<Made, LoadError> {
    let compile = |error: wasmtime::Error| LoadError::compile(&error);
    let started = Instant::now();
    let as_it_is = |init| Prepared {
        bytes: Cow::Borrowed(job.bytes),
        init,
        init_code: None,
    };
    let prepared = if !has_init {
        as_it_is(InitMode::None)
    } else if let Some(reason) = job.files.forbids_snapshot() {
        as_it_is(InitMode::PerCall { reason })
    } else {
        let engine = inner.init_engine().map_err(LoadError::compile)?;
        prepare(engine, inner.guests(), job, earlier.init_code.as_ref())?
    };
    let prepare = started.elapsed();
    let mut made = Made {
        entry: Entry {
            prepared_bytes: 0,
            init: prepared.init,
            code: None,
        },
        compiled: Vec::new(),
        code: None,
        init_code: None,
        prepare,
        compile: started.elapsed(),
    };
    if let Some(parts) = in_parts(inner, &made.entry.init, &prepared.bytes, earlier) {
        made.entry.prepared_bytes = parts.prepared_bytes;
        made.entry.code = Some(parts.name);
        made.compiled = parts.image;
        made.code = parts.code;
        // Worth keeping only where others can share the code: then their `init` does not wait for a compiler either.
        made.init_code = (prepared.init_code)
            .map(|init| init.serialize())
            .transpose()
            .map_err(compile)?;
    } else {
        let bytes = match made.entry.init {
            InitMode::Snapshot => Cow::Owned(segments::join(&prepared.bytes)),
            InitMode::None | InitMode::PerCall { .. } => prepared.bytes,
        };
        made.entry.prepared_bytes = bytes.len() as u64;
        made.compiled = (inner.engine.precompile_component(&bytes)).map_err(compile)?;
    }
    made.compile = started.elapsed().saturating_sub(prepare);
    Ok(made)
}

/// A snapshot in two compiled parts.
struct Parts {
    /// Name of the code.
    name: String,
    /// The code, if it had to be compiled.
    code: Option<Vec<u8>>,
    image: Vec<u8>,
    /// Size of both before they were compiled.
    prepared_bytes: u64,
}

/// Compiles a snapshot in two parts. Returns `None` if it has to stay whole.
fn in_parts(inner: &Inner, init: &InitMode, bytes: &[u8], earlier: &Earlier) -> Option<Parts> {
    if *init != InitMode::Snapshot {
        return None;
    }
    let split = split(bytes)?;
    let whole = |error: wasmtime::Error| {
        tracing::debug!("a snapshot is compiled whole, because its parts are not valid: {error:#}");
    };
    let image = (inner.engine.precompile_module(&split.image))
        .map_err(whole)
        .ok()?;
    let name = code_key(&inner.engine, &split.code);
    let code = if earlier.code.as_ref() == Some(&name) {
        None
    } else {
        let compiled = inner.engine.precompile_component(&split.code);
        Some(compiled.map_err(whole).ok()?)
    };
    Some(Parts {
        name,
        code,
        image,
        prepared_bytes: (split.code.len() + split.image.len()) as u64,
    })
}

/// Key of a prepared component in the cache: a hash of everything that it depends on.
pub(crate) fn key(
    engine: &Engine,
    component: &str,
    config_json: &str,
    files: &str,
    data: Option<blake3::Hash>,
) -> String {
    let data = data.as_ref().map_or(&[][..], |hash| hash.as_bytes());
    let parts = [
        component.as_bytes(),
        config_json.as_bytes(),
        files.as_bytes(),
    ];
    hashed(
        "rlf-host 2026-11-23 compiled component",
        engine,
        &parts,
        data,
    )
}

/// Key of the compiled component that `init` runs in.
pub(crate) fn init_key(engine: &Engine, component: &str) -> String {
    let parts = [component.as_bytes()];
    hashed(
        "rlf-host 2026-11-23 component for init",
        engine,
        &parts,
        &[],
    )
}

/// Key of code that snapshots share.
fn code_key(engine: &Engine, code: &[u8]) -> String {
    hashed(
        "rlf-host 2026-11-23 code of snapshots",
        engine,
        &[code],
        &[],
    )
}

/// A hash of these parts, this release and the settings of the engine, hexadecimal. `context` says what is hashed.
fn hashed(context: &str, engine: &Engine, parts: &[&[u8]], last: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    let release = [env!("CARGO_PKG_VERSION").as_bytes(), WASMTIME.as_bytes()];
    for part in release.iter().chain(parts) {
        hasher
            .update(&(part.len() as u64).to_le_bytes())
            .update(part);
    }
    hasher.update(last);
    let mut settings = Settings(hasher);
    std::hash::Hash::hash(&engine.precompile_compatibility_hash(), &mut settings);
    settings.0.finalize().to_hex().to_string()
}

/// Hashes values of `Hash` with BLAKE3: the standard hasher may change between releases.
struct Settings(blake3::Hasher);

impl std::hash::Hasher for Settings {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let mut first = [0; 8];
        self.0.finalize_xof().fill(&mut first);
        u64::from_le_bytes(first)
    }
}
