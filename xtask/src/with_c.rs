//! Guests with C inside, and the compiler that makes WebAssembly of it.
//!
//! QuickJS and SQLite are C, and few machines have a C compiler and a C library for WebAssembly. Zig's is both, in one
//! wheel of PyPI: it is fetched into `target/tools`, with its version and hash fixed in `plugins/with-c/requirements.txt`.
//! Where it cannot be had, these guests are left out and everything else is built.
//!
//! Zig does not know Rust's name of the target, so this program stands between the crate `cc` and Zig, as it does
//! between cargo and rustc.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};

use crate::{
    guests, manifest,
    project::Project,
    steps::{self, say},
};

/// Set where this program is to stand in for Zig's compiler: Zig.
const MARK: &str = "RLF_XTASK_ZIG";

/// The names that this program is then started by.
const CC: &str = "zig-cc";
const AR: &str = "zig-ar";

/// The workspace, relative to the repository.
pub const FOLDER: &str = "plugins/with-c";

/// Whether `folder`, of a guest's sources, belongs to this workspace, or is it.
pub fn is_member(folder: &Path) -> bool {
    let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    folder.ends_with(FOLDER) || text.lines().any(|line| line == "workspace = \"../with-c\"")
}

/// The `Cargo.toml` of the workspace of guests with C inside.
pub fn workspace(project: &Project) -> PathBuf {
    project.root().join(FOLDER).join("Cargo.toml")
}

/// Sets `command`, a cargo that builds guests, up to compile C with what [`compiler`] gave.
pub fn apply(project: &Project, compiler: &Path, command: &mut Command) -> Result<()> {
    let names = stand_ins(project)?;
    let target = guests::TARGET.replace('-', "_");
    let header = project.root().join("plugins/javascript/src/stack.h");
    // As rustc's flags do in `reproducible`: no path of this machine in a component.
    let flags = format!(
        "-ffile-prefix-map={}=/rlf -include {}",
        escaped(project.root()),
        escaped(&header)
    );
    let cache = project.root().join("target/tools/zig-cache");
    command
        .env(MARK, compiler)
        .env(format!("CC_{target}"), names.join(CC))
        .env(format!("AR_{target}"), names.join(AR))
        .env(format!("CFLAGS_{target}"), flags)
        .env("CC_SHELL_ESCAPED_FLAGS", "1")
        // The engine's build script would fetch a compiler of its own.
        .env("RQUICKJS_SYS_NO_WASI_SDK", "1")
        .env("ZIG_GLOBAL_CACHE_DIR", &cache)
        .env("ZIG_LOCAL_CACHE_DIR", &cache);
    Ok(())
}

fn escaped(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// Zig, fetched where it is not there yet. The error is one line: what to type to have it.
pub fn compiler(project: &Project) -> Result<PathBuf> {
    let requirements = project.root().join(FOLDER).join("requirements.txt");
    let wanted = fs::read(&requirements)
        .with_context(|| format!("{} cannot be read", requirements.display()))?;
    // Other requirements, another folder; one that was not finished has no mark.
    let name = format!("zig-{}", &manifest::hash(&wanted)[..12]);
    let folder = project.root().join("target/tools").join(name);
    let zig = folder
        .join("ziglang/zig")
        .with_extension(env::consts::EXE_EXTENSION);
    let mark = folder.join("complete");
    if mark.is_file() {
        return Ok(zig);
    }
    let python = env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    if steps::output(project.command(&python).args(["-m", "pip", "--version"])).is_err() {
        bail!(
            "their C compiler comes from PyPI, and `{python} -m pip` does not run: `apt-get install python3-pip`, or \
             name a Python that has pip in PYTHON"
        );
    }
    say(&format!(
        "  a C compiler for WebAssembly: Zig's, into {}",
        project.shown(&folder)
    ));
    let mut command = project.command(&python);
    command
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--require-hashes",
            "--no-deps",
        ])
        .args(["--only-binary", ":all:", "--disable-pip-version-check"])
        .args(["--root-user-action", "ignore", "--upgrade", "--target"])
        .arg(&folder)
        .arg("--requirement")
        .arg(&requirements);
    if !steps::status(&mut command)?.success() || !zig.is_file() {
        bail!(
            "pip did not install what {} lists: with no way to PyPI, name an index that has it in PIP_INDEX_URL, and \
             type `cargo xtask plugins` again",
            project.shown(&requirements)
        );
    }
    fs::write(&mark, "").with_context(|| format!("{} cannot be written", mark.display()))?;
    Ok(zig)
}

/// The folder where this program has the names [`CC`] and [`AR`].
fn stand_ins(project: &Project) -> Result<PathBuf> {
    let this = env::current_exe().context("this program cannot find itself")?;
    let folder = project.root().join("target/tools/zig-names");
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    for name in [CC, AR] {
        let path = folder.join(name).with_extension(env::consts::EXE_EXTENSION);
        // The one there may be an earlier build of this program.
        _ = fs::remove_file(&path);
        fs::hard_link(&this, &path)
            .or_else(|_| fs::copy(&this, &path).map(|_| ()))
            .with_context(|| format!("{} cannot be made", path.display()))?;
    }
    Ok(folder)
}

/// Where `cc` started this program in a compiler's place: runs Zig, and says how it ended.
pub fn as_compiler() -> Option<ExitCode> {
    let zig = env::var_os(MARK)?;
    let mut words = env::args_os();
    let name = PathBuf::from(words.next()?);
    let mut command = Command::new(&zig);
    match name.file_stem()?.to_str()? {
        CC => command
            .args(["cc", "-target", "wasm32-wasi"])
            .args(rewrite(words)),
        AR => command.arg("ar").args(words),
        _ => return None,
    };
    match command.status() {
        Ok(status) => Some(match status.code().map(u8::try_from) {
            Some(Ok(code)) => code.into(),
            _ => ExitCode::FAILURE,
        }),
        Err(error) => {
            eprintln!(
                "error: cannot start {}: {error}",
                PathBuf::from(zig).display()
            );
            Some(ExitCode::FAILURE)
        }
    }
}

/// The words of a C compiler without Rust's name of the target.
fn rewrite(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let names_target = |word: &OsString| {
        word.to_str()
            .is_some_and(|word| word.starts_with("--target="))
    };
    words.filter(|word| !names_target(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zig_is_not_told_the_target_by_a_name_that_it_does_not_know() {
        let words = ["-O3", "--target=wasm32-wasip2", "-c", "a.c"].map(OsString::from);
        assert_eq!(rewrite(words.into_iter()), ["-O3", "-c", "a.c"]);
    }

    #[test]
    fn a_path_with_a_quote_stays_one_word() {
        assert_eq!(escaped(Path::new("/it's/rlf")), r"'/it'\''s/rlf'");
    }
}
