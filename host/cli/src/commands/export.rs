//! `rlf-host export RUN --output DIR`: writes the model of a run as a folder for other programs.

use std::process::ExitCode;

use rlf_policy::{SaveOptions, StoredDtype};

use crate::arguments::{Export, ExportedType};

pub(crate) fn run(options: &Export) -> anyhow::Result<ExitCode> {
    let save = SaveOptions {
        dtype: match options.dtype {
            ExportedType::F32 => StoredDtype::F32,
            ExportedType::Bf16 => StoredDtype::Bf16,
        },
        untied: options.untied,
        ..SaveOptions::default()
    };
    let checkpoint = rlf_run::export(&options.run, &options.output, &save)?;
    say!(
        "{} has the model of {}",
        options.output.display(),
        checkpoint.display()
    );
    Ok(ExitCode::SUCCESS)
}
