//! `rlf-host download NAME`: downloads a published checkpoint and prints its folder.

use std::process::ExitCode;

use crate::arguments::Download;

pub(crate) fn run(options: &Download) -> anyhow::Result<ExitCode> {
    let hub = rlf_hub::Hub::from_environment()?;
    let folder = hub.checkpoint(&options.name, &options.revision)?;
    say!("{}", folder.display());
    Ok(ExitCode::SUCCESS)
}
