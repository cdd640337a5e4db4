//! The reasons why an environment behind a URL cannot be used.

/// An environment that cannot be used, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenEnvError {
    /// A key of its table is wrong.
    #[error("[openenv.{environment}] {key}: {reason}")]
    Config {
        /// The environment.
        environment: String,
        /// The key of its table.
        key: &'static str,
        /// The mistake, and what to write instead.
        reason: String,
    },
    /// It cannot be reached, or does not answer as OpenEnv does.
    #[error("[openenv.{environment}] {reason}; `enabled = false` leaves it out")]
    Connect {
        /// The environment.
        environment: String,
        /// The reason.
        reason: String,
    },
    /// The thread that asks servers cannot be started.
    #[error("cannot start a thread for OpenEnv: {0}")]
    Thread(String),
}

impl OpenEnvError {
    /// The key in the configuration, dotted.
    pub fn key(&self) -> String {
        match self {
            Self::Config {
                environment, key, ..
            } => format!("openenv.{environment}.{key}"),
            Self::Connect { environment, .. } => format!("openenv.{environment}"),
            Self::Thread(_) => String::new(),
        }
    }
}
