//! Guests with C inside, and the compiler that builds their C code for WebAssembly.
//!
//! QuickJS and SQLite are C, and few machines have a C compiler and a C library for WebAssembly. Zig is both, in one
//! wheel of PyPI. It is fetched into `target/tools`, with its version and hash fixed in
//! `plugins/with-c/requirements.txt`. If it cannot be fetched, these guests are left out and everything else is
//! built.
//!
//! Zig does not know Rust's name of the target, so this program runs between the crate `cc` and Zig, as it does
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

/// The variable that is set if this program has to act as Zig's compiler; its value is the path of Zig.
const MARK: &str = "RLF_XTASK_ZIG";

/// The names under which this program is then started.
const CC: &str = "zig-cc";
const AR: &str = "zig-ar";

/// The workspace, relative to the repository.
pub const FOLDER: &str = "plugins/with-c";

/// True if `folder`, of a guest's sources, is this workspace or belongs to it.
pub fn is_member(folder: &Path) -> bool {
    let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    folder.ends_with(FOLDER) || text.lines().any(|line| line == "workspace = \"../with-c\"")
}

/// The `Cargo.toml` of the workspace of guests with C inside.
pub fn workspace(project: &Project) -> PathBuf {
    project.root().join(FOLDER).join("Cargo.toml")
}

/// Sets up `command`, a cargo that builds guests, to compile C with the compiler of [`compiler`].
pub fn apply(project: &Project, compiler: &Path, command: &mut Command) -> Result<()> {
    let names = compiler_folder(project)?;
    let target = guests::TARGET.replace('-', "_");
    let header = project.root().join("plugins/javascript/src/stack.h");
    // As with rustc's flags in `reproducible`: components contain no path of this machine.
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
        // Otherwise the engine's build script would fetch another compiler.
        .env("RQUICKJS_SYS_NO_WASI_SDK", "1")
        .env("ZIG_GLOBAL_CACHE_DIR", &cache)
        .env("ZIG_LOCAL_CACHE_DIR", &cache);
    Ok(())
}

fn escaped(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// The path of Zig, which is fetched if it does not exist yet. The error is one line with the command to type.
pub fn compiler(project: &Project) -> Result<PathBuf> {
    let requirements = project.root().join(FOLDER).join("requirements.txt");
    let wanted = fs::read(&requirements)
        .with_context(|| format!("{} cannot be read", requirements.display()))?;
    // Other requirements have another folder; one that was not finished lacks the mark file.
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
            "their C compiler is installed from PyPI, and `{python} -m pip` does not run: `apt-get install python3-pip`, or \
             name a Python that has pip in PYTHON"
        );
    }
    say(&format!(
        "  installing Zig, a C compiler for WebAssembly, into {}",
        project.display(&folder)
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
            "pip did not install what {} lists: if PyPI cannot be reached, name an index that has it in PIP_INDEX_URL, and \
             type `cargo xtask plugins` again",
            project.display(&requirements)
        );
    }
    fs::write(&mark, "").with_context(|| format!("{} cannot be written", mark.display()))?;
    Ok(zig)
}

/// The folder in which this program has the names [`CC`] and [`AR`].
fn compiler_folder(project: &Project) -> Result<PathBuf> {
    let this = env::current_exe().context("the path of this program is unknown")?;
    let folder = project.root().join("target/tools/zig-names");
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    for name in [CC, AR] {
        let path = folder.join(name).with_extension(env::consts::EXE_EXTENSION);
        // An existing file may be an earlier build of this program.
        _ = fs::remove_file(&path);
        fs::hard_link(&this, &path)
            .or_else(|_| fs::copy(&this, &path).map(|_| ()))
            .with_context(|| format!("{} cannot be made", path.display()))?;
    }
    Ok(folder)
}

/// If `cc` started this program as a compiler: runs Zig, and returns its exit code.
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

/// The words of a C compiler's call without Rust's name of the target.
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
