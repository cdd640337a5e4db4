//! Data sets that are not part of the repository, and tests that are skipped without them.
//!
//! Tests of other crates include this file by its path, so it uses the standard library only.

// This file is a module of every test program that includes it, and a module of this library.
#![allow(unreachable_pub)]

use std::{env, fs, io::Write as _, path::PathBuf, thread};

/// The path of `name` in the folder of data sets: the one that `RLF_DATA` names, relative to the repository, or
/// `../shared/data`. Without the file the running test counts as skipped. docs/contributing.md says where each data
/// set comes from.
pub fn data(name: &str) -> Option<PathBuf> {
    let folder = env::var_os("RLF_DATA").unwrap_or_else(|| "../shared/data".into());
    let path = root().join(folder).join(name);
    if path.exists() {
        return Some(path);
    }
    skip(
        &format!("the data set {name} is not here"),
        "docs/contributing.md says where it comes from; then `RLF_DATA=DIR cargo xtask test`",
    );
    None
}

/// Reports that the running test is skipped for `reason`, and that `mend` would make it run. `cargo xtask test`
/// collects these reports in a file, because test runners hide the output of a test that passes.
pub fn skip(reason: &str, mend: &str) {
    eprintln!("SKIPPED: {reason}; {mend}");
    let Some(list) = env::var_os("RLF_SKIPPED_TESTS") else {
        return;
    };
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = format!("{test}\t{reason}\t{mend}\n");
    let list = fs::OpenOptions::new().create(true).append(true).open(list);
    list.and_then(|mut list| list.write_all(line.as_bytes()))
        .expect("the list of skipped tests can be written");
}

/// The repository's folder.
fn root() -> PathBuf {
    let crate_folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut folders = crate_folder.ancestors();
    let root = folders.find(|folder| folder.join("xtask/Cargo.toml").is_file());
    root.expect("tests run inside a checkout").to_owned()
}
