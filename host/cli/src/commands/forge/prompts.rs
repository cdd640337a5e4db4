//! `rlf-host forge prompts`, `forge env prompts` and `forge rows --write-prompts`: write prompts that a user can change.

use std::path::Path;
use std::process::ExitCode;

use rlf_forge::ask::prompts::{Shipped, write_to};
use serde_json::json;

pub(super) fn run(set: &[Shipped], output: &Path, as_json: bool) -> anyhow::Result<ExitCode> {
    let written = write_to(set, output)?;
    let kept = set.len() - written.len();
    if as_json {
        let report = json!({"output": output, "written": written, "kept": kept});
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        for file in &written {
            say!("{}", file.display());
        }
        say!(
            "{} prompts written, {kept} there already; use them with --prompts {}",
            written.len(),
            output.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}
