//! Tests that were skipped because this machine lacks something: data, or a plugin that needs another compiler.
//!
//! Test runners hide the output of a test that passes. So a skipped test appends a line to a file, which `cargo xtask
//! test` names in an environment variable and prints at its end. The tests use `tests/src/data.rs` for this.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{project::Project, steps::say};

/// The variable with the file that skipped tests append to, one line each: `TEST<tab>REASON<tab>COMMAND`.
pub const VARIABLE: &str = "RLF_SKIPPED_TESTS";

/// Appends a line to the list. A list that cannot be written fails no test, because each test has printed its line
/// already.
fn append(list: &Path, test: &str, reason: &str, mend: &str) {
    let line = format!("{test}\t{reason}\t{mend}\n");
    let file = fs::OpenOptions::new().create(true).append(true).open(list);
    _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
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

    /// Makes the tests that `command` runs append to the list.
    pub fn collect(&self, command: &mut Command) {
        command.env(VARIABLE, &self.path);
    }

    /// Appends a check that `cargo xtask` itself skips.
    pub fn add(&self, check: &str, reason: &str, mend: &str) {
        say(&format!("  SKIPPED: {check}: {reason}; {mend}"));
        append(&self.path, check, reason, mend);
    }

    /// Prints the number of skipped tests, and each with its reason and the command that would make it run.
    pub fn report(&self) {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        for line in lines(&text) {
            say(&line);
        }
    }
}

/// The lines to print for a list of skipped tests.
fn lines(list: &str) -> Vec<String> {
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
        assert_eq!(lines(""), Vec::<String>::new());
        let lines = lines("b\tno data\tget it\na\tno clang\tapt-get\nb\tno data\tget it\n");
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
