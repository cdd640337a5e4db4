//! The operator's configuration.

use rlf_plugin::Grading;
use rlf_plugin::serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, crate = "rlf_plugin::serde")]
pub(crate) struct Config {
    pub(crate) tau: Tau,
    pub(crate) uncalled: Uncalled,
}

/// The weight of the trace; the rest to 1 is the weight of the state.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    crate = "rlf_plugin::serde",
    expecting = "tau is a number or { from = NUMBER, to = NUMBER }"
)]
pub(crate) enum Tau {
    Fixed(f64),
    Linear { from: f64, to: f64 },
}

/// The state of a server that was never called.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "kebab-case", crate = "rlf_plugin::serde")]
pub(crate) enum Uncalled {
    #[default]
    Initial,
    Mismatch,
}

impl Default for Tau {
    fn default() -> Self {
        Self::Linear { from: 0.9, to: 0.1 }
    }
}

impl Tau {
    /// The weight at this step of training; steps are counted from 0.
    pub(crate) fn at(self, grading: &Grading) -> f64 {
        match self {
            Self::Fixed(tau) => tau,
            Self::Linear { to, .. } if grading.split != "train" || grading.steps == 0 => to,
            Self::Linear { from, to } => {
                let last = grading.steps - 1;
                let done = grading.step.min(last) as f64 / last.max(1) as f64;
                from * (1.0 - done) + to * done
            }
        }
    }
}

/// Refuses invalid weights.
pub(crate) fn init(config: Config) -> Result<Config, String> {
    let weights = match config.tau {
        Tau::Fixed(tau) => [tau, tau],
        Tau::Linear { from, to } => [from, to],
    };
    for weight in weights {
        if !(0.0..=1.0).contains(&weight) {
            return Err(format!(
                "configuration: tau = {weight} is no share; give it a number from 0 to 1"
            ));
        }
    }
    Ok(config)
}
