//! The protocols of environments behind a URL.

/// A protocol of environments behind a URL. Each has tables of its own in a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// OpenEnv, with tables `[openenv.NAME]`.
    OpenEnv,
    /// The Open Reward Standard, with tables `[ors.NAME]`.
    Ors,
}

impl Protocol {
    /// The key of its tables.
    pub fn table(self) -> &'static str {
        match self {
            Self::OpenEnv => "openenv",
            Self::Ors => "ors",
        }
    }
}
