//! Measures one way of running sessions in rounds, in which several sessions do the same operation at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use async_trait::async_trait;
use rlf_plugins::python_environment::Scenario;
use serde_json::Value;
use tokio::task::JoinSet;

/// Numbers of sessions that act at once.
pub(super) const AT_ONCE: [usize; 2] = [1, 32];
/// The operations that are measured.
pub(super) const OPERATIONS: [&str; 4] = ["open", "call", "snapshot", "restore"];
/// Number of sessions opened, snapshots and restores in a row.
pub(super) const IN_A_ROW: usize = 4;

/// An operation that is repeated on a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Operation {
    /// Makes the scenario's calls one after the other.
    Call,
    Snapshot,
    /// Restores the last snapshot.
    Restore,
}

/// A way of running sessions.
#[async_trait]
pub(super) trait Way: Send + Sync {
    async fn open(&self) -> anyhow::Result<Box<dyn Player>>;

    /// Number of sessions to open in a row.
    fn openings(&self) -> usize;
}

/// One session.
#[async_trait]
pub(super) trait Player: Send {
    /// Does the operation, and returns the seconds that each part took.
    async fn turn(&mut self, operation: Operation) -> anyhow::Result<Vec<f64>>;

    /// Restores the session's state at the first call of this function.
    async fn again(&mut self) -> anyhow::Result<()>;

    async fn state(&mut self) -> anyhow::Result<Value>;
}

/// Measured times of operations.
pub(super) struct Samples {
    pub(super) seconds: Vec<f64>,
    pub(super) per_s: f64,
}

impl Samples {
    /// `elapsed` is the total time of operations that ran at once. `None` means they ran one after the other.
    pub(super) fn new(mut seconds: Vec<f64>, elapsed: Option<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        let elapsed = elapsed.unwrap_or_else(|| seconds.iter().sum());
        Self {
            per_s: seconds.len() as f64 / elapsed,
            seconds,
        }
    }

    /// The given quantile, in microseconds.
    pub(super) fn at(&self, part: f64) -> f64 {
        let last = self.seconds.len().saturating_sub(1) as f64;
        let at = self.seconds.get((last * part) as usize);
        at.map_or(f64::NAN, |seconds| seconds * 1e6)
    }
}

/// Times by operation and number of sessions at once.
pub(super) type Figures = BTreeMap<(&'static str, usize), Samples>;

/// Measures all figures of one way, after checking that the scenario ends in the expected state.
pub(super) async fn figures(
    way: Arc<dyn Way>,
    scenario: &Scenario,
    time: Duration,
) -> anyhow::Result<Figures> {
    let mut player = way.open().await?;
    player.turn(Operation::Call).await?;
    let state = player.state().await?;
    ensure!(
        scenario.expect.as_ref() == Some(&state),
        "scenario `{}` led to {state}, and not to what it expects",
        scenario.id
    );
    drop(player);
    let mut figures = Figures::new();
    for at_once in AT_ONCE {
        let way = Arc::clone(&way);
        // Runs on a thread of the runtime, as rollouts do.
        let found = tokio::spawn(measure(way, at_once, time)).await;
        for (what, samples) in found.context("a caller broke")?? {
            figures.insert((what, at_once), samples);
        }
    }
    Ok(figures)
}

async fn measure(
    way: Arc<dyn Way>,
    at_once: usize,
    time: Duration,
) -> anyhow::Result<Vec<(&'static str, Samples)>> {
    let mut found = Vec::new();
    let (mut seconds, mut elapsed) = (Vec::new(), 0.0);
    let mut players: Vec<Box<dyn Player>>;
    let began = Instant::now();
    loop {
        let phase = Instant::now();
        let opened = together((0..at_once).map(|_| open(Arc::clone(&way)))).await?;
        elapsed += phase.elapsed().as_secs_f64();
        players = Vec::new();
        for (opened, player) in opened {
            seconds.extend(opened);
            players.extend(player);
        }
        if began.elapsed() >= time {
            break;
        }
    }
    let all = |elapsed: f64| (at_once > 1).then_some(elapsed);
    found.push(("open", Samples::new(seconds, all(elapsed))));
    for (operation, what, times) in [
        (Operation::Call, "call", 1),
        (Operation::Snapshot, "snapshot", IN_A_ROW),
        (Operation::Restore, "restore", IN_A_ROW),
    ] {
        let (mut seconds, mut elapsed) = (Vec::new(), 0.0);
        let began = Instant::now();
        while seconds.is_empty() || began.elapsed() < time {
            if operation == Operation::Call {
                // Not timed: it makes every round of calls begin in the same state.
                players = together(players.into_iter().map(|mut player| async move {
                    player.again().await?;
                    Ok(player)
                }))
                .await?;
            }
            let phase = Instant::now();
            let turns = players.into_iter().map(|mut player| async move {
                let mut seconds = Vec::new();
                for _ in 0..times {
                    seconds.extend(player.turn(operation).await?);
                }
                Ok((seconds, player))
            });
            let turns = together(turns).await?;
            elapsed += phase.elapsed().as_secs_f64();
            players = Vec::new();
            for (turn, player) in turns {
                seconds.extend(turn);
                players.push(player);
            }
        }
        found.push((what, Samples::new(seconds, all(elapsed))));
    }
    Ok(found)
}

/// Opens several sessions in a row and closes each before the next. Returns the times and the last session.
async fn open(way: Arc<dyn Way>) -> anyhow::Result<(Vec<f64>, Option<Box<dyn Player>>)> {
    let (mut seconds, mut last) = (Vec::new(), None);
    for _ in 0..way.openings() {
        drop(last.take());
        let began = Instant::now();
        last = Some(way.open().await?);
        seconds.push(began.elapsed().as_secs_f64());
    }
    Ok((seconds, last))
}

/// Runs the tasks at once; a single task runs on this thread.
pub(super) async fn together<T: Send + 'static>(
    tasks: impl Iterator<Item = impl Future<Output = anyhow::Result<T>> + Send + 'static>,
) -> anyhow::Result<Vec<T>> {
    let mut tasks: Vec<_> = tasks.collect();
    if tasks.len() == 1
        && let Some(only) = tasks.pop()
    {
        return Ok(vec![only.await?]);
    }
    let mut running: JoinSet<_> = tasks.into_iter().collect();
    let mut done = Vec::new();
    while let Some(one) = running.join_next().await {
        done.push(one.context("a caller broke")??);
    }
    Ok(done)
}
