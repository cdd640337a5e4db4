//! Paths of the repository and its target folder, and the way to start cargo in it.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

/// A checkout of the repository.
#[derive(Clone, Debug)]
pub struct Project {
    root: PathBuf,
    host_target: PathBuf,
}

impl Project {
    /// The checkout that the running crate belongs to or, outside cargo, the one of the current folder.
    pub fn find() -> Result<Self> {
        let start = match env::var_os("CARGO_MANIFEST_DIR") {
            Some(folder) => PathBuf::from(folder),
            None => env::current_dir().context("the current folder cannot be read")?,
        };
        let root = start
            .ancestors()
            .find(|folder| folder.join("xtask/Cargo.toml").is_file())
            .with_context(|| {
                format!(
                    "{} is not in a checkout of rlf-host: change into one and try again",
                    start.display()
                )
            })?;
        let host_target = match env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => root.join(folder),
            None => root.join("target"),
        };
        Ok(Self {
            root: root.to_owned(),
            host_target,
        })
    }

    /// A checkout at `root`, with the target folder inside it.
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            host_target: root.join("target"),
        }
    }

    /// The folder with the workspace's `Cargo.toml`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Cargo's target folder for native code: `target`, or the value of `CARGO_TARGET_DIR`.
    pub fn host_target(&self) -> &Path {
        &self.host_target
    }

    /// Cargo's target folder for guests. Like the folders of built plugins it ignores `CARGO_TARGET_DIR`, so that
    /// `--plugins target/plugins` is right in every shell.
    pub fn guests_target(&self) -> PathBuf {
        self.root.join("target/guests")
    }

    /// The path of the `rlf-host` binary, once built.
    pub fn binary(&self) -> PathBuf {
        self.host_target
            .join("release/rlf-host")
            .with_extension(env::consts::EXE_EXTENSION)
    }

    /// The path of the `rlf-bench` binary, once built.
    pub fn bench_binary(&self) -> PathBuf {
        self.binary()
            .with_file_name("rlf-bench")
            .with_extension(env::consts::EXE_EXTENSION)
    }

    /// `path` as a user would type it in the root folder.
    pub fn display<'path>(&self, path: &'path Path) -> std::path::Display<'path> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }

    /// A command that runs in the root folder without the variables that the outer `cargo run` sets for this crate:
    /// build scripts that watch such variables would run again.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CARGO_PKG_")
                || name.starts_with("CARGO_MANIFEST_")
                || matches!(
                    &*name,
                    "CARGO_BIN_NAME" | "CARGO_CRATE_NAME" | "CARGO_PRIMARY_PACKAGE" | "OUT_DIR"
                )
            {
                command.env_remove(&*name);
            }
        }
        command
    }

    /// `cargo SUBCOMMAND` in the root folder.
    pub fn cargo(&self, subcommand: &str) -> Command {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = self.command(cargo);
        command.arg(subcommand);
        command
    }
}
