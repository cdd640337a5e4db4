//! `rlf-host run`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;

use super::PluginDirectory;

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// File of the program, or `-` for standard input
    pub(crate) script: PathBuf,
    /// Arguments of the program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
    /// Language of the program (default: by the file's extension; python for standard input)
    #[arg(long, visible_alias = "language")]
    pub(crate) lang: Option<String>,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
    /// Configuration file; its `[sandbox]` and `[plugins.*]` apply (default: none)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Limit of CPU time, and of virtual time, in milliseconds each (default: as configured, or 10000)
    #[arg(long, value_name = "MS", value_parser = RangedU64ValueParser::<u64>::new().range(1..=86_400_000))]
    pub(crate) time_ms: Option<u64>,
    /// Limit of memory, such as 64MiB; at most 4GiB (default: as configured, or 256MiB)
    #[arg(long, value_name = "BYTES", value_parser = memory)]
    pub(crate) memory: Option<u64>,
    /// Limit of output on each stream, beyond which the program is stopped, such as 1MiB (default: as configured, or
    /// 16MiB)
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) output: Option<u64>,
    /// Limit of all files of the program together, such as 32MiB (default: as configured, or 16MiB)
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) files: Option<u64>,
    /// Seed of all randomness
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Give the program a file, under its own name or another; may be repeated
    #[arg(long = "file", value_name = "PATH[=NAME]")]
    pub(crate) given: Vec<String>,
    /// Keep a file that the program leaves, under its own name or another; may be repeated
    #[arg(long = "fetch", value_name = "NAME[=PATH]")]
    pub(crate) fetched: Vec<String>,
}

/// Parses a number of bytes, such as `4096`, `64KiB`, `16MiB` or `1GiB`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let (number, shift) = units
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))
        .unwrap_or((text, 0));
    let number: u64 = number
        .trim()
        .parse()
        .map_err(|_| "write a number of bytes, such as 4096 or 64MiB".to_owned())?;
    number
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "the number of bytes must be at least 1, and below 2^64".to_owned())
}

/// Parses a number of bytes for a program's memory, whose addresses have 32 bits.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    bytes(text).and_then(|bytes| {
        if bytes <= 4 << 30 {
            Ok(bytes)
        } else {
            Err("a program can address 4GiB at the most".to_owned())
        }
    })
}
