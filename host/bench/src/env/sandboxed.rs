//! Sessions in this project's sandbox: of a component, or of a Python file in the Python component.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use async_trait::async_trait;
use rlf_dialogue::tool::{Ended, ToolCall};
use rlf_environments::environments::{EnvironmentConfig, Environments};
use rlf_environments::session::EnvironmentSession;
use rlf_environments::snapshot::SessionSnapshot;
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::python_environment::PythonEnvironment;
use rlf_plugins::python_environment::Scenario;
use rlf_plugins::registry::Registry;
use rlf_plugins::turn::TurnContext;
use rlf_run::plugins::KINDS;
use rlf_sandbox::{Sandbox, SandboxConfig, SandboxError, prepare_process};
use serde_json::Value;

use super::rounds::{IN_A_ROW, Operation, Player, Way};
use super::{Options, RETAIL, SPECIFIED};

/// Maximum time to wait until an earlier sandbox is freed.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// An environment that is not loaded yet.
pub(super) struct MeasuredEnvironment {
    pub(super) name: String,
    pub(super) title: String,
    plugins: PathBuf,
    cache: PathBuf,
    grants: PluginGrants,
}

impl MeasuredEnvironment {
    pub(super) fn retail(options: &Options<'_>, retail: &Path, cache: &Path) -> Self {
        let grants = PluginGrants {
            data: BTreeMap::from([("retail".to_owned(), retail.to_owned())]),
            ..PluginGrants::default()
        };
        Self::new(
            RETAIL,
            format!("{RETAIL}, component"),
            options,
            cache,
            grants,
        )
    }

    pub(super) fn specified(options: &Options<'_>, cache: &Path, file: &Path) -> Self {
        let grants = PluginGrants {
            data: BTreeMap::from([("specifications".to_owned(), file.to_owned())]),
            ..PluginGrants::default()
        };
        Self::new(SPECIFIED, SPECIFIED.to_owned(), options, cache, grants)
    }

    pub(super) fn python(options: &Options<'_>, cache: &Path, file: &Path, server: &str) -> Self {
        let grants = PluginGrants {
            plugin: Some("python".to_owned()),
            environment: Some(PythonEnvironment::new(file.to_owned())),
            ..PluginGrants::default()
        };
        Self::new(
            "servers",
            format!("{server} in Python"),
            options,
            cache,
            grants,
        )
    }

    fn new(
        name: &str,
        title: String,
        options: &Options<'_>,
        cache: &Path,
        grants: PluginGrants,
    ) -> Self {
        Self {
            name: name.to_owned(),
            title,
            plugins: options.plugins.to_owned(),
            cache: cache.to_owned(),
            grants,
        }
    }

    /// Loads the environment into a sandbox with `places` places for sessions.
    pub(super) fn environments(&self, places: u32) -> anyhow::Result<Environments> {
        let config = SandboxConfig {
            cache: Some(self.cache.clone()),
            preparer: Some(prepare_process::this_program()),
            instances: Some(8),
            programs: Some(8),
            sessions: Some(places),
            // CPython may be compiled while the machine is busy with other work.
            prepare: Duration::from_mins(10),
            ..SandboxConfig::default()
        };
        // Nearly all of this memory is shared, so the number of places is the real limit.
        let budget = u64::from(places.max(64)) * config.max_memory_bytes;
        let sandbox = reserve(&SandboxConfig {
            session_memory_budget_bytes: Some(budget),
            ..config
        })?;
        let grants_by_name = BTreeMap::from([(self.name.clone(), self.grants.clone())]);
        let registry =
            Registry::load_where(&self.plugins, &grants_by_name, KINDS, &sandbox, |alias| {
                alias == self.name
            });
        if let Some(problem) = registry.problems().first() {
            bail!("{problem}");
        }
        // No session is evicted for being idle.
        let idle = EnvironmentConfig {
            idle: Duration::from_hours(1),
        };
        Ok(Environments::new(&registry, &sandbox, &idle))
    }

    pub(super) fn load(&self, places: u32, scenario: &Arc<Scenario>) -> anyhow::Result<InSandbox> {
        Ok(InSandbox {
            environments: self.environments(places)?,
            name: self.name.clone(),
            scenario: Arc::clone(scenario),
        })
    }

    /// The environment's first scenario that has several calls and changes something.
    pub(super) async fn scenario(&self) -> anyhow::Result<Arc<Scenario>> {
        let environments = self.environments(8)?;
        for scenario in environments.scenarios(&self.name).await? {
            let session = environments
                .open(&self.name, "bench", &scenario.task, scenario.seed)
                .await?;
            let state = session.state().await.map_err(anyhow::Error::msg)?;
            let begins: Value = serde_json::from_str(&state)?;
            let changes = scenario.expect.as_ref().is_some_and(|end| *end != begins);
            if changes && scenario.calls.len() > 1 {
                return Ok(Arc::new(scenario));
            }
        }
        bail!(
            "{} has no scenario of several calls that change something; write one into scenarios.json beside its file",
            self.title
        )
    }
}

/// Makes a sandbox. There is address space for 10,000 sessions only once, so this waits until an earlier sandbox is
/// freed.
fn reserve(config: &SandboxConfig) -> anyhow::Result<Sandbox> {
    let began = Instant::now();
    loop {
        match Sandbox::new(config) {
            Err(SandboxError::Engine { .. }) if began.elapsed() < MAX_WAIT => {
                std::thread::sleep(Duration::from_millis(100));
            }
            made => return Ok(made?),
        }
    }
}

/// Opens sessions in the sandbox.
pub(super) struct InSandbox {
    pub(super) environments: Environments,
    name: String,
    scenario: Arc<Scenario>,
}

impl InSandbox {
    pub(super) async fn begin(&self) -> anyhow::Result<SandboxedSession> {
        let Scenario { task, seed, .. } = &*self.scenario;
        let opened = self.environments.open(&self.name, "bench", task, *seed);
        Ok(SandboxedSession {
            session: opened.await?,
            scenario: Arc::clone(&self.scenario),
            start: None,
            last: None,
            calls: 0,
        })
    }
}

#[async_trait]
impl Way for InSandbox {
    async fn open(&self) -> anyhow::Result<Box<dyn Player>> {
        Ok(Box::new(self.begin().await?))
    }

    fn openings(&self) -> usize {
        IN_A_ROW
    }
}

/// One session in the sandbox.
pub(super) struct SandboxedSession {
    session: EnvironmentSession,
    scenario: Arc<Scenario>,
    start: Option<SessionSnapshot>,
    last: Option<SessionSnapshot>,
    calls: usize,
}

impl SandboxedSession {
    /// Makes the scenario's next call, starting over after the last. Returns its seconds. A refused call counts as
    /// answered.
    pub(super) async fn call(&mut self) -> anyhow::Result<f64> {
        let (name, arguments) = &self.scenario.calls[self.calls % self.scenario.calls.len()];
        let call = ToolCall {
            call_id: format!("bench/0/{}", self.calls),
            name: name.clone(),
            arguments: arguments.clone(),
        };
        let context = TurnContext {
            trajectory_id: "bench".into(),
            turn: u32::try_from(self.calls).unwrap_or(u32::MAX),
            seed: 0,
        };
        self.calls += 1;
        let began = Instant::now();
        let outcome = self.session.call(call, &context).await;
        let seconds = began.elapsed().as_secs_f64();
        ensure!(
            matches!(outcome.ended, Ended::Ok | Ended::Failed),
            "a call of `{}` ended as {}: {}",
            outcome.name,
            outcome.ended.as_str(),
            outcome.detail.as_deref().unwrap_or_default()
        );
        Ok(seconds)
    }
}

#[async_trait]
impl Player for SandboxedSession {
    async fn turn(&mut self, operation: Operation) -> anyhow::Result<Vec<f64>> {
        let began = Instant::now();
        match operation {
            Operation::Call => {
                let mut seconds = Vec::new();
                for _ in 0..self.scenario.calls.len() {
                    seconds.push(self.call().await?);
                }
                return Ok(seconds);
            }
            Operation::Snapshot => {
                let snapshot = self.session.snapshot().await;
                self.last = Some(snapshot.map_err(anyhow::Error::msg)?);
            }
            Operation::Restore => {
                let last = self.last.as_ref().context("nothing to restore")?;
                self.session.restore(last).await?;
            }
        }
        Ok(vec![began.elapsed().as_secs_f64()])
    }

    async fn again(&mut self) -> anyhow::Result<()> {
        if let Some(start) = &self.start {
            return Ok(self.session.restore(start).await?);
        }
        let snapshot = self.session.snapshot().await;
        self.start = Some(snapshot.map_err(anyhow::Error::msg)?);
        Ok(())
    }

    async fn state(&mut self) -> anyhow::Result<Value> {
        let state = self.session.state().await.map_err(anyhow::Error::msg)?;
        serde_json::from_str(&state).context("the state is no JSON")
    }
}
