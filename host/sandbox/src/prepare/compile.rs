//! Preparing and compiling a component in this process.

use std::time::Instant;

use wasmtime::Engine;
use wasmtime::component::Component;

use super::error::LoadError;
use super::job::{Entry, InitMode, Job, Preparation};
use super::snapshot::prepare;
use crate::engine::{Inner, WASMTIME};

/// Runs `init` if there is one, keeps the memory that it leaves, and compiles.
pub(crate) fn make(
    inner: &Inner,
    job: &Job<'_>,
    has_init: bool,
) -> Result<(Component, Entry, Preparation), LoadError> {
    let started = Instant::now();
    let prepared;
    let (bytes, init) = if !has_init {
        (job.bytes, InitMode::None)
    } else if let Some(reason) = job.files.forbids_snapshot() {
        (job.bytes, InitMode::PerCall { reason })
    } else {
        let engine = inner.init_engine().map_err(LoadError::compile)?;
        prepared = prepare(engine, inner.guests(), job)?;
        (&*prepared.bytes, prepared.init)
    };
    let prepare = started.elapsed();
    let component =
        Component::new(&inner.engine, bytes).map_err(|error| LoadError::compile(&error))?;
    let preparation = Preparation {
        from_cache: false,
        prepare,
        compile: started.elapsed().saturating_sub(prepare),
        prepared_bytes: bytes.len() as u64,
    };
    Ok((
        component,
        Entry {
            init,
            prepared_bytes: bytes.len() as u64,
        },
        preparation,
    ))
}

/// Key of compiled code in the cache: a hash of everything that the code depends on.
pub(crate) fn key(
    engine: &Engine,
    component: &str,
    config_json: &str,
    files: &str,
    data: Option<blake3::Hash>,
) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("rlf-host 2026-11-23 compiled component");
    for part in [
        env!("CARGO_PKG_VERSION"),
        WASMTIME,
        component,
        config_json,
        files,
    ] {
        hasher
            .update(&(part.len() as u64).to_le_bytes())
            .update(part.as_bytes());
    }
    hasher.update(data.as_ref().map_or(&[][..], |hash| hash.as_bytes()));
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
