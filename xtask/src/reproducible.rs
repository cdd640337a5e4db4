//! The same sources give the same component, in any folder.
//!
//! Grants and runs are bound to a component's hash, so it should depend on the plugin and not on the machine. Two
//! things get in the way. Panic messages contain file names, which `--remap-path-prefix` replaces. And cargo passes
//! rustc `-C metadata`, a hash of the package's origin: for a path inside the workspace's folder it hashes the
//! relative path, but `sdk/` is outside the guests' workspace, so it hashes the absolute one. Symbol names follow
//! from that hash, the order of functions from the names, and the bytes from that order.
//!
//! So this program runs between cargo and rustc (`RUSTC_WORKSPACE_WRAPPER`) while guests are built. For packages of
//! the workspace it replaces that hash by the crate's name, which is unique there.

use std::{
    env,
    ffi::OsString,
    process::{Command, ExitCode},
};

use anyhow::{Context, Result};

use crate::project::Project;

/// The variable that is set if this program has to act as rustc.
const MARK: &str = "RLF_XTASK_IS_RUSTC";

/// Sets up `command`, a cargo that builds guests, to build them the same everywhere.
pub fn apply(project: &Project, command: &mut Command) -> Result<()> {
    let this = env::current_exe().context("the path of this program is unknown")?;
    command
        .env_remove("RUSTFLAGS")
        .env("CARGO_ENCODED_RUSTFLAGS", flags(project))
        .env("RUSTC_WORKSPACE_WRAPPER", this)
        .env(MARK, "1");
    Ok(())
}

/// The file names in components: `/rlf/..` for ours, `/cargo/..` for dependencies.
fn flags(project: &Project) -> String {
    let mut flags = vec![format!(
        "--remap-path-prefix={}=/rlf",
        project.root().display()
    )];
    let home = env::var_os("CARGO_HOME").map(Into::into);
    if let Some(home) = home.or_else(|| Some(env::home_dir()?.join(".cargo"))) {
        flags.push(format!("--remap-path-prefix={}=/cargo", home.display()));
    }
    flags.join("\x1f")
}

/// If cargo started this program as rustc: runs rustc, and returns its exit code.
pub fn as_rustc() -> Option<ExitCode> {
    env::var_os(MARK)?;
    let mut words = env::args_os().skip(1);
    let rustc = words.next()?;
    let status = Command::new(&rustc)
        .args(rewrite(words.collect()))
        .env_remove(MARK)
        .status();
    match status {
        Ok(status) => Some(match status.code().map(u8::try_from) {
            Some(Ok(code)) => code.into(),
            _ => ExitCode::FAILURE,
        }),
        Err(error) => {
            eprintln!("error: cannot start {}: {error}", rustc.display());
            Some(ExitCode::FAILURE)
        }
    }
}

/// The arguments of rustc, with `-C metadata`'s hash replaced by the crate's name.
fn rewrite(mut words: Vec<OsString>) -> Vec<OsString> {
    let after = |word: &str| Some(words.iter().position(|w| w == word)? + 1);
    let Some(name) = after("--crate-name").and_then(|at| words.get(at)?.to_str()) else {
        return words;
    };
    let metadata = format!("metadata={name}").into();
    let is_metadata = |word: &OsString| {
        word.to_str()
            .is_some_and(|word| word.starts_with("metadata="))
    };
    if let Some(at) = words.iter().position(is_metadata) {
        words[at] = metadata;
    }
    words
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn rewritten(line: &str) -> Vec<String> {
        let words = line.split(' ').map(OsString::from).collect();
        let words = rewrite(words).into_iter();
        words.map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn symbols_are_named_after_the_crate_and_not_its_folder() {
        let one = "--crate-name rlf_plugin src/lib.rs -C metadata=0123 -C extra-filename=-4567";
        let other = "--crate-name rlf_plugin src/lib.rs -C metadata=89ab -C extra-filename=-4567";
        assert_eq!(rewritten(one), rewritten(other));
        assert!(rewritten(one).contains(&"metadata=rlf_plugin".to_owned()));
        assert!(rewritten(one).contains(&"extra-filename=-4567".to_owned()));
    }

    #[test]
    fn questions_to_rustc_pass_unchanged() {
        assert_eq!(rewritten("-vV"), ["-vV"]);
    }

    #[test]
    fn paths_of_the_machine_do_not_reach_components() {
        let flags = flags(&Project::at(Path::new("/somewhere/rlf-host")));
        assert!(flags.contains("--remap-path-prefix=/somewhere/rlf-host=/rlf"));
    }
}
