//! `rlf-host forge env prompts`: writes the prompts that a user can change.

use std::path::Path;
use std::process::ExitCode;

use rlf_forge::ask::prompts::write_to;
use rlf_forge::writer::PROMPTS;
use serde_json::json;

pub(super) fn run(output: &Path, as_json: bool) -> anyhow::Result<ExitCode> {
    let written = write_to(PROMPTS, output)?;
    let kept = PROMPTS.len() - written.len();
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
