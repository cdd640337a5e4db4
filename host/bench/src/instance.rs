//! Measures calls of a tool inside one instance, and the cost of an instance, for `rlf-bench sandbox`. Both are
//! compared with calls in fresh instances. An error is the end of a call that gave no value. Arguments are JSON, and go
//! to the guest unchecked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rlf_plugins::bindings::types;
use rlf_plugins::plugin::Plugin;
use rlf_sandbox::{CallSpec, Stopped};
use rlf_tools::ToolIndices;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Calls a tool `times` times in one instance, with these arguments in turn, and returns the time of each call. No
/// plugin is called like this in a run: the times exclude the costs of a fresh instance, of limits and of checks.
pub(super) async fn warm(
    plugin: &Plugin,
    tool: &str,
    arguments: Vec<String>,
    times: usize,
) -> Result<Vec<Duration>, Stopped> {
    let (indices, tool, _) = owned(plugin, tool, "")?;
    let report = plugin
        .template()
        .call(CallSpec::default(), move |store, instance| {
            Box::pin(async move {
                let guest = indices.load(&mut *store, &instance)?;
                let mut each = Vec::with_capacity(times);
                for arguments in arguments.iter().cycle().take(times) {
                    let began = Instant::now();
                    let context = context();
                    let seen = guest.call_call(&mut *store, &tool, arguments, &context);
                    drop(std::hint::black_box(seen.await?));
                    each.push(began.elapsed());
                }
                Ok(each)
            })
        })
        .await;
    report.outcome
}

/// Calls a tool in `count` instances, and keeps all of them until `look` returns.
pub(super) async fn while_held<T>(
    plugin: &Plugin,
    tool: &str,
    arguments: &str,
    count: usize,
    look: impl FnOnce() -> T,
) -> Result<T, Stopped> {
    let (arrived, mut arrivals) = mpsc::channel(count.max(1));
    let (release, held) = watch::channel(());
    let mut calls = JoinSet::new();
    for _ in 0..count {
        let (indices, tool, arguments) = owned(plugin, tool, arguments)?;
        let (arrived, mut held) = (arrived.clone(), held.clone());
        let template = plugin.template().clone();
        calls.spawn(async move {
            let report = template
                .call(CallSpec::default(), move |store, instance| {
                    Box::pin(async move {
                        let guest = indices.load(&mut *store, &instance)?;
                        let context = context();
                        let seen = guest.call_call(&mut *store, &tool, &arguments, &context);
                        drop(seen.await?);
                        let _ = arrived.send(()).await;
                        let _ = held.changed().await;
                        Ok(())
                    })
                })
                .await;
            report.outcome
        });
    }
    for _ in 0..count {
        tokio::select! {
            _ = arrivals.recv() => {}
            Some(ended) = calls.join_next() => {
                let stopped = ended.ok().and_then(Result::err);
                return Err(stopped.unwrap_or_else(|| Stopped::unavailable("a held call broke")));
            }
        }
    }
    let seen = look();
    drop(release);
    while calls.join_next().await.is_some() {}
    Ok(seen)
}

type Owned = (ToolIndices, String, String);

fn owned(plugin: &Plugin, tool: &str, arguments: &str) -> Result<Owned, Stopped> {
    let Some(indices) = plugin.exports::<ToolIndices>() else {
        return Err(Stopped::unavailable("the plugin offers no tools"));
    };
    Ok((Arc::clone(indices), tool.to_owned(), arguments.to_owned()))
}

fn context() -> types::CallContext {
    types::CallContext {
        call_id: "bench/0/0".to_owned(),
        attempt: 0,
        trajectory_id: "bench".to_owned(),
        turn: 0,
        seed: 0,
        budget_ms: 10_000,
        extra: Vec::new(),
    }
}
