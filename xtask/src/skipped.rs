//! Tests that were skipped because this machine lacks something: data, or a plugin that needs another compiler.
//!
//! Runners of tests hide the output of a test that passes, so a skipped test appends a line to a file that
//! `cargo xtask test` names in an environment variable, and prints at its end.

use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::{Context, Result};

use crate::{project::Project, steps::say};

/// Names the file that skipped tests append to: a line each, `TEST<tab>REASON<tab>COMMAND`.
pub const VARIABLE: &str = "RLF_SKIPPED_TESTS";

/// Names the folder of data sets, where it is not the default.
pub const DATA: &str = "RLF_DATA";

/// Notes that the running test is skipped for `reason`, and that `mend` would make it run.
pub fn note(reason: &str, mend: &str) {
    eprintln!("SKIPPED: {reason}; {mend}");
    if let Some(path) = env::var_os(VARIABLE) {
        let thread = thread::current();
        append(
            path.as_ref(),
            thread.name().unwrap_or("a test"),
            reason,
            mend,
        );
    }
}

/// Appends a line to the list. A list that cannot be written fails no test: each has printed its line already.
fn append(list: &Path, test: &str, reason: &str, mend: &str) {
    let line = format!("{test}\t{reason}\t{mend}\n");
    let file = fs::OpenOptions::new().create(true).append(true).open(list);
    _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
}

/// The path of `name` in the folder of data sets. Where it does not exist, the running test is noted as skipped.
pub fn data(root: &Path, name: &str) -> Option<PathBuf> {
    let folder = match env::var_os(DATA) {
        Some(folder) => root.join(folder),
        None => root.join("../shared/data"),
    };
    let path = folder.join(name);
    if path.exists() {
        return Some(path);
    }
    note(
        &format!("{name} is not among the data sets"),
        &format!(
            "{DATA}=DIR cargo xtask test, with the data sets that docs/contributing.md lists in DIR"
        ),
    );
    None
}

/// The list of tests that one command skipped.
#[derive(Debug)]
pub struct Skipped {
    path: PathBuf,
}

impl Skipped {
    /// An empty list, in the target folder.
    pub fn start(project: &Project) -> Result<Self> {
        let path = project.host_target().join("skipped-tests.tsv");
        fs::create_dir_all(project.host_target())
            .and_then(|()| fs::write(&path, ""))
            .with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(Self { path })
    }

    /// Has the tests that `command` runs append to the list.
    pub fn collect(&self, command: &mut Command) {
        command.env(VARIABLE, &self.path);
    }

    /// Appends a check that `cargo xtask` itself skips.
    pub fn add(&self, check: &str, reason: &str, mend: &str) {
        say(&format!("  SKIPPED: {check}: {reason}; {mend}"));
        append(&self.path, check, reason, mend);
    }

    /// Prints how many tests were skipped, and each with the reason and the command that would make it run.
    pub fn report(&self) {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        for line in shown(&text) {
            say(&line);
        }
    }
}

/// The lines to print for a list of skipped tests.
fn shown(list: &str) -> Vec<String> {
    let mut tests: Vec<Vec<&str>> = list
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    tests.sort();
    tests.dedup();
    if tests.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![format!("\n{} skipped:", tests.len())];
    for test in tests {
        if let [name, reason, mend] = test[..] {
            lines.push(format!("  {name}: {reason}\n    mend: {mend}"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_skipped_test_is_counted_and_named_once_with_what_mends_it() {
        assert_eq!(shown(""), Vec::<String>::new());
        let lines = shown("b\tno data\tget it\na\tno clang\tapt-get\nb\tno data\tget it\n");
        assert_eq!(
            lines,
            [
                "\n2 skipped:",
                "  a: no clang\n    mend: apt-get",
                "  b: no data\n    mend: get it"
            ]
        );
    }
}
