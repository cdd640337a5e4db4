//! Errors of a policy, with what to do about them.

use std::path::PathBuf;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// `config.json` is missing, unreadable or describes a model that is not supported.
    #[error("{origin}: {message}")]
    Config {
        /// The file or other origin of the configuration.
        origin: String,
        /// The mistake, and what would be right.
        message: String,
    },
    /// A file of a checkpoint could not be read or written.
    #[error("{}: {action}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// A checkpoint's content does not fit its configuration, or is damaged.
    #[error("{}: {message}", path.display())]
    Checkpoint {
        /// The file or folder.
        path: PathBuf,
        /// The tensor, the expected and the found content, and what to do.
        message: String,
    },
    /// A device that does not exist or cannot be used.
    #[error("device \"{asked}\": {reason}")]
    Device {
        /// The name in the configuration.
        asked: String,
        /// The reason why it cannot be used, and the devices that can.
        reason: String,
    },
    /// An invalid batch, entry or parameter.
    #[error("{0}")]
    Input(String),
    /// A gradient that is missing, infinite or not a number. No parameter was changed.
    #[error("gradient of {parameter}: {message}")]
    Gradient {
        /// The parameter, or `global norm`.
        parameter: String,
        /// The mistake.
        message: String,
    },
    /// A setting of the optimiser cannot be used.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// A tensor operation failed.
    #[error("tensor operation: {0}")]
    Tensor(#[from] candle_core::Error),
}

impl PolicyError {
    pub(crate) fn io(
        path: impl Into<PathBuf>,
        action: &'static str,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            path,
            action,
            source,
        }
    }

    /// The error of a file that could not be written.
    pub(crate) fn writing(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        Self::io(path, "writing (is the disk full?)")
    }

    pub(crate) fn checkpoint(path: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self::Checkpoint {
            path: path.into(),
            message: message.into(),
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key} = {value}`: {reason}")]
pub struct InvalidSetting {
    /// The key as written in a configuration, such as `optimizer.learning_rate`.
    pub key: &'static str,
    /// The configured value.
    pub value: String,
    /// The mistake, and a value that would work.
    pub reason: &'static str,
}

impl InvalidSetting {
    /// Refuses the setting unless `holds`.
    pub fn require(
        holds: bool,
        key: &'static str,
        value: &dyn std::fmt::Display,
        reason: &'static str,
    ) -> Result<(), Self> {
        if holds {
            return Ok(());
        }
        Err(Self {
            key,
            value: value.to_string(),
            reason,
        })
    }
}

/// The result of this crate's functions.
pub type Result<T, E = PolicyError> = std::result::Result<T, E>;
