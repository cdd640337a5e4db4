//! A model behind an endpoint, measured on the tasks of a configuration or of a run. No checkpoint is needed.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rlf_dialogue::split::Split;
use rlf_dialogue::task::NumberedTask;
use rlf_endpoint::Endpoint;
use rlf_policy::SamplingParams;
use rlf_rollout::endpoint_loop::{EndpointPlayer, TokensSpent};
use rlf_rollout::evaluate::Evaluation;
use rlf_train::run::config_path;
use tempfile::TempDir;

use crate::config::RunConfig;
use crate::error::{ConfigurationError, RunFailure, SavedRunError};
use crate::parts::RunParts;
use crate::plugins::PluginSources;
use crate::reporter::RunReporter;
use crate::saved::parts_of;

/// A model behind an endpoint, with everything that plays and grades its trajectories.
pub struct MeasuredEndpoint {
    /// All parts except a policy.
    pub parts: RunParts,
    player: Arc<EndpointPlayer>,
    /// The folder that stands in for that of a run, if there is no run. It is removed after the parts that use it.
    _folder: Option<TempDir>,
}

/// The result of a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// Success, as for a policy.
    pub evaluation: Evaluation,
    /// The tokens spent.
    pub spent: TokensSpent,
}

impl MeasuredEndpoint {
    /// Reads the configuration at `path`, a file or the folder of a run, after the settings `key.path=value`, which
    /// replace its values.
    pub fn configuration(path: &Path, settings: &[String]) -> Result<RunConfig, RunFailure> {
        let mut file = path.to_owned();
        if path.is_dir() {
            file = config_path(path);
            SavedRunError::unless_run(path, &file)?;
        }
        Ok(RunConfig::load(&file, settings)?)
    }

    /// Makes the parts of `config`, whose table `[endpoint]` names the model. `run` is the folder of the run that the
    /// configuration belongs to, if it belongs to one. Nothing is asked yet.
    pub fn open(
        mut config: RunConfig,
        run: Option<&Path>,
        plugins: &PluginSources,
        reporter: &dyn RunReporter,
    ) -> Result<Self, RunFailure> {
        let endpoint = Endpoint::open(config.endpoint.clone()).map_err(|error| {
            let key = format!("endpoint.{}", error.key);
            let problem = format!("{key}: {}", error.reason);
            ConfigurationError::value(key, problem)
        })?;
        if config.agent.is_some() {
            reporter.warn(
                "[agent] is not used: a model behind an endpoint is measured in the loop of this program",
            );
        }
        // Demonstrations are for training.
        config.sft = None;
        // The endpoint samples the turns.
        config.external_engine = None;
        let output = config.output.clone();
        let (parts, folder) = if let Some(run) = run {
            (parts_of(config, run, plugins, reporter)?, None)
        } else {
            let folder = tempfile::tempdir();
            let folder = folder.map_err(RunFailure::io("cannot make a temporary folder"))?;
            let parts = RunParts::new(config, plugins, folder.path(), reporter)?;
            (parts, Some(folder))
        };
        let trained = run.unwrap_or(&output);
        parts.own_weights.advance_to_newest(Some(trained))?;
        Ok(Self {
            parts,
            player: Arc::new(EndpointPlayer::new(endpoint)),
            _folder: folder,
        })
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        self.player.endpoint()
    }

    /// Measures the model on tasks of a split: greedily, and with `samples` samples for each task at this temperature.
    /// Fails if no trajectory could be graded.
    pub fn evaluate<'a>(
        &'a self,
        split: Split,
        tasks: &'a [NumberedTask],
        samples: usize,
        temperature: f32,
    ) -> BoxFuture<'a, Result<Measurement, RunFailure>> {
        Box::pin(async move {
            let engine = self.parts.engine(self.player.clone());
            let params = SamplingParams {
                temperature,
                ..SamplingParams::default()
            };
            let (evaluation, _) = self
                .parts
                .evaluate_with(&engine, split, tasks, samples, params, 0)
                .await?;
            RunFailure::if_nothing_graded(&evaluation)?;
            Ok(Measurement {
                evaluation,
                spent: self.player.spent(),
            })
        })
    }
}
