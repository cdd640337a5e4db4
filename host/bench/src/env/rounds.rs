//! The rounds in which a way's figures are taken: so many sessions each do the same, all at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use async_trait::async_trait;
use rlf_plugins::python_environment::Scenario;
use serde_json::Value;
use tokio::task::JoinSet;

/// Sessions that act side by side.
pub(super) const AT_ONCE: [usize; 2] = [1, 32];
/// Sessions opened, snapshots and restorings in a row.
pub(super) const IN_A_ROW: usize = 4;

/// Done to a session over and over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Act {
    /// The scenario's calls, one after the other.
    Call,
    Snapshot,
    /// Size of the last snapshot.
    Restore,
}

/// A way to have sessions.
#[async_trait]
pub(super) trait Way: Send + Sync {
    async fn open(&self) -> anyhow::Result<Box<dyn Player>>;

    /// Number that are opened in a row.
    fn openings(&self) -> usize;
}

/// A session, in whatever way.
#[async_trait]
pub(super) trait Player: Send {
    /// The seconds that each took.
    async fn turn(&mut self, act: Act) -> anyhow::Result<Vec<f64>>;

    /// Puts it back to where it was when this was asked first.
    async fn again(&mut self) -> anyhow::Result<()>;

    async fn state(&mut self) -> anyhow::Result<Value>;
}

/// Times of acts.
pub(super) struct Samples {
    pub(super) seconds: Vec<f64>,
    pub(super) per_s: f64,
}

impl Samples {
    /// `elapsed` is the time that all took together; nothing where they were made one after the other.
    pub(super) fn new(mut seconds: Vec<f64>, elapsed: Option<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        let elapsed = elapsed.unwrap_or_else(|| seconds.iter().sum());
        Self {
            per_s: seconds.len() as f64 / elapsed,
            seconds,
        }
    }

    /// In microseconds.
    pub(super) fn at(&self, part: f64) -> f64 {
        let last = self.seconds.len().saturating_sub(1) as f64;
        let at = self.seconds.get((last * part) as usize);
        at.map_or(f64::NAN, |seconds| seconds * 1e6)
    }
}

/// By what was done, and how many did it at once.
pub(super) type Figures = BTreeMap<(&'static str, usize), Samples>;

/// All figures of one way, once it has shown that the scenario leads where it should.
pub(super) async fn figures(
    way: Arc<dyn Way>,
    scenario: &Scenario,
    time: Duration,
) -> anyhow::Result<Figures> {
    let mut player = way.open().await?;
    player.turn(Act::Call).await?;
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
        // On a thread of the runtime's, as rollouts are.
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
    for (act, what, times) in [
        (Act::Call, "call", 1),
        (Act::Snapshot, "snapshot", IN_A_ROW),
        (Act::Restore, "restore", IN_A_ROW),
    ] {
        let (mut seconds, mut elapsed) = (Vec::new(), 0.0);
        let began = Instant::now();
        while seconds.is_empty() || began.elapsed() < time {
            if act == Act::Call {
                // Not timed: every round of calls begins in the same state.
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
                    seconds.extend(player.turn(act).await?);
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

/// Some in a row, each closed before the next; the last one stays.
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

/// Side by side, or one alone on this thread.
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
