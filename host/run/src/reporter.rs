//! The reports of a run to its caller while it works.

use std::path::{Path, PathBuf};

use rlf_dialogue::History;
use rlf_policy::DeviceChoice;
use rlf_rollout::evaluate::Evaluation;
use rlf_train::metrics::MetricsLine;
use rlf_train::phase::Phase;

/// Receives the reports of a run. The library prints nothing; every method does nothing by default.
///
/// Methods are called in the order of events, on any thread, and should return quickly.
pub trait RunReporter: Send + Sync {
    /// Something is probably wrong, and work continues.
    fn warn(&self, _warning: &str) {}

    /// Plugins have been loading for some seconds: components that are new on this machine are compiled first.
    fn loading_slowly(&self) {}

    /// A run begins, or is resumed, in this folder and on this device.
    fn begins(&self, _run: &Path, _device: &DeviceChoice) {}

    /// All parts are loaded and summarised.
    fn assembled(&self, _summary: &RunSummary) {}

    /// A training step is done; the phase has `steps` steps.
    fn stepped(&self, _line: &MetricsLine, _steps: u64) {}

    /// An evaluation on this split begins.
    fn evaluating(&self, _split: &str) {}

    /// An evaluation is done: of the test split at this moment of the run, or of the validation split after this number of
    /// steps of the phase.
    fn evaluated(&self, _moment: Option<Moment>, _after: (Phase, u64), _evaluation: &Evaluation) {}

    /// RL ends after `step` of `steps` steps, because so many validations in a row were no better than the best.
    fn ended_early(&self, _step: u64, _steps: u64, _patience: u64) {}

    /// The last step of the run, or of its control, is done.
    fn phases_ended(&self) {}

    /// The control begins: SFT for about as long as RL took.
    fn control_begins(&self, _steps: u64, _rl_seconds: f64) {}
}

/// A moment of a run at which the test split is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before the first step.
    Start,
    /// At the end of SFT.
    AfterSft,
    /// At the end of RL.
    AfterRl,
    /// At the end of the control of a run.
    Control,
}

impl Moment {
    /// Its name in the metrics and in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "at the start",
            Self::AfterSft => "after SFT",
            Self::AfterRl => "after RL",
            Self::Control => "control: SFT instead of RL",
        }
    }
}

/// Reports nothing to anybody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl RunReporter for Silent {}

/// The parts of a run, for people.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSummary {
    /// Numbers in the model, with those of its adapters.
    pub parameters: usize,
    /// Numbers that are trained: all of them, or those of adapters.
    pub trained_parameters: usize,
    /// Token ids that the tokenizer has.
    pub vocabulary: usize,
    /// Environments that tasks live in.
    pub environments: Vec<String>,
    /// Tools that tasks may use besides those of their environment.
    pub tools: Vec<String>,
    /// The agent that leads trajectories, if it is not the run's own loop.
    pub agent: Option<String>,
    /// Origin of the chat template.
    pub template: String,
    /// Cases in which the template changes earlier turns when it renders them again.
    pub template_changes: Vec<&'static str>,
    /// Treatment of such turns.
    pub history: History,
    /// Plugins that grade trajectories.
    pub rewards: Vec<String>,
    /// The expression that says which trajectory is a success.
    pub success: String,
    /// The checkpoint that training continues from.
    pub resumed_from: Option<PathBuf>,
}
