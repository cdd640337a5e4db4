//! `rlf-host report RUN`: writes a run's report.

use std::process::ExitCode;

use anyhow::Context;
use rlf_run::RunHistory;

use crate::arguments::Report;
use crate::report::html;

pub(crate) fn run(options: &Report) -> anyhow::Result<ExitCode> {
    let path = write(&options.run, options.output.as_deref())?;
    say!("{}", path.display());
    Ok(ExitCode::SUCCESS)
}

/// Writes the page and returns its path.
pub(crate) fn write(
    run: &std::path::Path,
    output: Option<&std::path::Path>,
) -> anyhow::Result<std::path::PathBuf> {
    let page = html(&RunHistory::read(run)?)?;
    let path = output.map_or_else(|| run.join("report.html"), std::path::Path::to_owned);
    rlf_files::write(&path, page.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
