//! Adds helpful options to the errors of a run. The library does not know the options of the command line.

use std::io::ErrorKind;

use anyhow::anyhow;
use rlf_rollout::RolloutError;
use rlf_run::plugins::SHIPPED_VARIABLE;
use rlf_run::{ConfigurationError, FolderError, PluginsError, RunFailure};
use rlf_train::error::TrainError;
use rlf_train::run::RunError;

/// Adds the options of `train`, `eval`, `rollout` and `replay` that mend the error, if there are any.
pub(crate) fn with_options(failure: impl Into<RunFailure>) -> anyhow::Error {
    let failure = failure.into();
    if let RunFailure::Run(RunError::NoRun { path })
    | RunFailure::Training(TrainError::Run(RunError::NoRun { path })) = &failure
    {
        return anyhow!(
            "there is no run in {} to resume (it has no config.toml); leave out --resume to begin one",
            path.display()
        );
    }
    let (before, after) = match &failure {
        RunFailure::Configuration(ConfigurationError::Setting { .. }) => ("--set ", ""),
        RunFailure::Configuration(ConfigurationError::Value { key, .. }) => ("", for_endpoint(key)),
        RunFailure::Rollout(RolloutError::Endpoint { .. }) => {
            ("", " (--endpoint, --model, --key-env)")
        }
        RunFailure::Folder(FolderError::HoldsARun { .. }) => {
            ("", " (--resume, --overwrite or --run DIR)")
        }
        RunFailure::Folder(FolderError::NotEmpty { .. } | FolderError::NotARun { .. }) => {
            ("", " (--run DIR)")
        }
        RunFailure::Plugins(PluginsError::NoDirectory(folder))
            if std::env::var_os(SHIPPED_VARIABLE).is_some() =>
        {
            return anyhow!(
                "{SHIPPED_VARIABLE} names {}, and there is no such folder; correct the variable, or unset it",
                folder.display()
            );
        }
        RunFailure::Plugins(PluginsError::NoDirectory(_)) => ("", " (--plugins DIR)"),
        RunFailure::TooLarge { .. } => ("", " (`rlf-host plan CONFIG` shows more)"),
        RunFailure::Control(_) => ("--control: ", ""),
        RunFailure::Training(TrainError::Demonstrations { .. }) => {
            ("", " (once the row is mended: --resume --allow-changes)")
        }
        RunFailure::Run(error) | RunFailure::Training(TrainError::Run(error)) => {
            ("", for_run(error))
        }
        _ => return failure.into(),
    };
    anyhow!("{before}{failure}{after}")
}

/// Adds the options of `ablate` that mend the error of one of its runs. `ablate` chooses the run's folder and resumes it by
/// itself, so the options of `train` do not apply.
pub(crate) fn with_ablate_options(failure: RunFailure) -> anyhow::Error {
    match &failure {
        RunFailure::Run(RunError::Changed { path, changes }) => anyhow!(
            "the run in {} was begun with other settings, plugins, task files or models:\n  - {}\nundo the changes, or name another folder \
             with --output DIR, in which all variants are trained anew",
            path.display(),
            changes.join("\n  - ")
        ),
        RunFailure::Run(error) | RunFailure::Training(TrainError::Run(error))
            if for_run(error) == RESUME =>
        {
            anyhow!("{failure} (the same command goes on from there)")
        }
        RunFailure::Run(_)
        | RunFailure::Training(TrainError::Run(_) | TrainError::Demonstrations { .. })
        | RunFailure::Folder(_) => failure.into(),
        _ => with_options(failure),
    }
}

/// The option that goes on with a run.
const RESUME: &str = " (--resume)";

/// The option of `eval` that sets a key of `[endpoint]`.
fn for_endpoint(key: &str) -> &'static str {
    match key {
        "endpoint.url" => " (--endpoint URL)",
        "endpoint.temperature" => " (--temperature)",
        "endpoint.model" => " (--model NAME)",
        "endpoint.key_env" => " (--key-env NAME)",
        "endpoint.max_concurrent" => " (--max-concurrent N)",
        _ => "",
    }
}

/// The options of `train` that mend an error of the run's folder.
fn for_run(error: &RunError) -> &'static str {
    match error {
        RunError::Exists { .. } => " (--resume, --overwrite or --run DIR)",
        RunError::Changed { .. } => " (--allow-changes)",
        RunError::Io { source, .. }
            if matches!(
                source.kind(),
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded
            ) =>
        {
            RESUME
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_runs_folder_name_the_options_that_mend_them() {
        let path = || "runs/a".into();
        let full = RunError::Io {
            action: "write",
            path: path(),
            source: ErrorKind::StorageFull.into(),
        };
        let changed = RunError::Changed {
            path: path(),
            changes: Vec::new(),
        };
        for (error, option) in [
            (RunError::NoRun { path: path() }, "leave out --resume"),
            (RunError::Exists { path: path() }, "--resume"),
            (changed, "--allow-changes"),
            (
                full,
                "resume the run: the last checkpoint is whole (--resume)",
            ),
        ] {
            assert!(!error.to_string().contains("--"), "{error}");
            let told = with_options(RunFailure::Run(error)).to_string();
            assert!(told.contains(option), "{told}");
        }
    }

    #[test]
    fn errors_of_ablate_name_no_options_of_train() {
        let path = || "runs/a".into();
        let io = |kind: ErrorKind| RunError::Io {
            action: "write",
            path: path(),
            source: kind.into(),
        };
        let changed = RunError::Changed {
            path: path(),
            changes: vec!["seed: was 1, is 2".into()],
        };
        for (error, wanted) in [
            (
                changed,
                "  - seed: was 1, is 2\nundo the changes, or name another folder with --output DIR",
            ),
            (
                io(ErrorKind::StorageFull),
                "(the same command goes on from there)",
            ),
            (io(ErrorKind::PermissionDenied), "cannot write runs/a"),
            (
                RunError::Exists { path: path() },
                "runs/a already holds a run",
            ),
        ] {
            let told = with_ablate_options(RunFailure::Run(error)).to_string();
            assert!(told.contains(wanted), "{told}");
            for option in ["--resume", "--allow-changes", "--run", "allow them"] {
                assert!(!told.contains(option), "{told}");
            }
        }
    }
}
