//! `rlf-host merge RUN --output DIR`: writes the whole model of a run with adapters.

use std::process::ExitCode;

use rlf_policy::{SaveOptions, StoredDtype};

use crate::arguments::{Merge, MergedType};

pub(crate) fn run(options: &Merge) -> anyhow::Result<ExitCode> {
    let save = SaveOptions {
        dtype: match options.dtype {
            MergedType::F32 => StoredDtype::F32,
            MergedType::Bf16 => StoredDtype::Bf16,
        },
        ..SaveOptions::default()
    };
    let checkpoint = rlf_run::merge(&options.run, &options.output, &save)?;
    say!(
        "{} has the whole model of {}",
        options.output.display(),
        checkpoint.display()
    );
    Ok(ExitCode::SUCCESS)
}
