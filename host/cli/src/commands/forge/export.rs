//! `rlf-host forge export`: writes the tasks of a folder as rows for training.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use rlf_forge::tasks::output::{self, Format, Naming, Practised, RowSettings, Written};
use rlf_forge::tasks::{Folder, Suite, TaskRecord};
use serde_json::json;

use super::counted::counted;
use super::suite::from_folder;
use crate::arguments::{RowOptions, TaskFormat};

pub(super) fn run(
    folder: &Path,
    formats: &[TaskFormat],
    options: &RowOptions,
    output: &Path,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let folder = Folder::new(folder);
    let suite = from_folder(&folder)?;
    let tasks = folder
        .read_tasks()
        .context("`rlf-host forge tasks` has not finished this folder")?;
    let settings = options.over(folder.read_row_settings()?);
    let written = write(&suite, &tasks, formats, &settings, output)?;
    if as_json {
        let files = written
            .iter()
            .map(|file| json!({ "path": file.path, "rows": file.rows }));
        say!(
            "{}",
            serde_json::to_string_pretty(&files.collect::<Vec<_>>())?
        );
    } else {
        show(&written);
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes rows in each format.
pub(super) fn write(
    suite: &Suite,
    tasks: &[TaskRecord],
    formats: &[TaskFormat],
    settings: &RowSettings,
    folder: &Path,
) -> anyhow::Result<Vec<Written>> {
    let naming = Naming {
        environment: settings.environment.clone(),
        ..Naming::default()
    };
    let practised = Practised::draw(tasks, settings.practice);
    let mut written = Vec::new();
    for format in formats {
        let format = match format {
            TaskFormat::Tasks => Format::Tasks,
            TaskFormat::Demonstrations => Format::Demonstrations,
            TaskFormat::Alpaca => Format::Alpaca,
            TaskFormat::Verl => Format::Verl,
        };
        written.extend(output::write(
            suite, tasks, format, &naming, &practised, folder,
        )?);
    }
    Ok(written)
}

/// Prints the files.
pub(super) fn show(written: &[Written]) {
    for file in written {
        say!("{}: {}", file.path.display(), counted(file.rows, "row"));
    }
}
