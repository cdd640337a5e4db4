//! The operator's configuration.

use rlf_plugin::execute::Limits;
use rlf_plugin::serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default, crate = "rlf_plugin::serde")]
pub(crate) struct Config {
    /// The term that `score` repeats: `all` or `rate`.
    pub(crate) score: Scoring,
    /// The place of the code in the answer.
    pub(crate) code: Extraction,
    /// The treatment of tests that cannot be kept from the candidate.
    pub(crate) weak: Weak,
    /// CPU time and virtual time of one program.
    pub(crate) wall_ms: u32,
    /// Memory of one program; 0 for the whole limit of the interpreter.
    pub(crate) memory_bytes: u64,
    /// Programs for one candidate's calls: after a call that never ends, the next program continues after it.
    pub(crate) attempts: usize,
    /// Number of a row's tests that count, from the first one; 0 for all.
    pub(crate) max_tests: usize,
    /// Programs of one grade call, as `limits.nested_calls` allows them.
    pub(crate) programs: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", crate = "rlf_plugin::serde")]
pub(crate) enum Scoring {
    All,
    Rate,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", crate = "rlf_plugin::serde")]
pub(crate) enum Extraction {
    /// The last block marked as Python, else the last block, else the whole answer.
    LastBlock,
    /// The first block marked as Python, else the first block, else the whole answer.
    FirstBlock,
    /// All blocks marked as Python, else all blocks, joined; else the whole answer.
    AllBlocks,
    /// The whole answer.
    Answer,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", crate = "rlf_plugin::serde")]
pub(crate) enum Weak {
    /// They run in the candidate's process.
    Run,
    /// They do not run, and count as failed.
    Fail,
    /// Their row is excluded.
    Error,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            score: Scoring::All,
            code: Extraction::LastBlock,
            weak: Weak::Run,
            wall_ms: 1_000,
            memory_bytes: 0,
            attempts: 3,
            max_tests: 0,
            programs: 64,
        }
    }
}

impl Config {
    /// Limits of a program that judges: twice the time of a candidate's program.
    pub(crate) fn judging(&self) -> Limits {
        Limits {
            wall_ms: self.wall_ms.saturating_mul(2),
            ..self.limits()
        }
    }

    /// Limits of one program.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            wall_ms: self.wall_ms,
            memory_bytes: self.memory_bytes,
            ..Limits::default()
        }
    }
}

/// Refuses settings that would make every grade wrong.
pub(crate) fn init(config: Config) -> Result<Config, String> {
    for (key, value) in [
        ("wall_ms", config.wall_ms as usize),
        ("attempts", config.attempts),
        ("programs", config.programs),
    ] {
        if value == 0 {
            return Err(format!(
                "configuration: {key} = 0 would let no candidate pass; give it at least 1"
            ));
        }
    }
    Ok(config)
}
