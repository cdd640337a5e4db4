//! Adds the options that help to the errors of a run, because the library knows no options.

use anyhow::anyhow;
use rlf_run::{ConfigurationError, FolderError, PluginsError, RunFailure};

/// Adds the options of `train`, `eval` and `rollout` that mend the error, if there are any.
pub(crate) fn with_options(failure: impl Into<RunFailure>) -> anyhow::Error {
    let failure = failure.into();
    let (before, after) = match &failure {
        RunFailure::Configuration(ConfigurationError::Setting { .. }) => ("--set ", ""),
        RunFailure::Folder(FolderError::HoldsARun { .. }) => {
            ("", " (--resume, --overwrite or --run DIR)")
        }
        RunFailure::Folder(FolderError::NotEmpty { .. } | FolderError::NotARun { .. }) => {
            ("", " (--run DIR)")
        }
        RunFailure::Plugins(PluginsError::NoDirectory(_)) => ("", " (--plugins DIR)"),
        RunFailure::Control(_) => ("--control: ", ""),
        _ => return failure.into(),
    };
    anyhow!("{before}{failure}{after}")
}
