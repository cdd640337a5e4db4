//! `rlf-host cache`: shows what the cache of compiled components holds, and makes it smaller.

use std::process::ExitCode;

use anyhow::Context;
use rlf_sandbox::{SandboxConfig, cache_usage, shrink_cache, user_cache};
use serde_json::json;

use crate::arguments::Cache;
use crate::operator::Operator;

pub(crate) fn run(options: &Cache) -> anyhow::Result<ExitCode> {
    let sandbox = match &options.config {
        Some(file) => Operator::load(Some(file))?.sandbox,
        None => SandboxConfig::default(),
    };
    let folder = sandbox.cache.or_else(user_cache);
    let folder = folder.context("there is no cache: neither XDG_CACHE_HOME nor HOME is set")?;
    let failed = || format!("the cache {}", folder.display());
    let before = cache_usage(&folder).with_context(failed)?;
    if let Some(keep) = options.keep {
        shrink_cache(&folder, keep << 20).with_context(failed)?;
    }
    let now = cache_usage(&folder).with_context(failed)?;
    let unused = now.oldest_use.and_then(|used| used.elapsed().ok());
    if options.json {
        let report = json!({
            "folder": folder,
            "entries": now.entries,
            "bytes": now.bytes,
            "removed_bytes": before.bytes.saturating_sub(now.bytes),
            "limit_bytes": sandbox.cache_bytes,
            "longest_unused_s": unused.map(|unused| unused.as_secs()),
        });
        say!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(ExitCode::SUCCESS);
    }
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    say!("folder   {}", folder.display());
    say!("entries  {}, {} together", now.entries, mib(now.bytes));
    if let Some(unused) = unused {
        let hours = unused.as_secs() / 3600;
        say!("oldest   last used {hours} hours ago");
    }
    say!(
        "limit    {}: `cache_bytes` in [sandbox]",
        mib(sandbox.cache_bytes)
    );
    if options.keep.is_some() {
        let removed = before.bytes.saturating_sub(now.bytes);
        say!("removed  {}", mib(removed));
    }
    Ok(ExitCode::SUCCESS)
}
