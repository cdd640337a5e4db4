//! The container image: the program, the plugins, the C library and certificates, and nothing else.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use super::{Files, LICENCES, Target, pack};
use crate::{
    folders::{copy_folder, empty_folder},
    host,
    project::Project,
    steps::{self, say},
    venv::Venv,
};

/// The largest size of an image, uncompressed. A change that needs more says why here.
///
/// The program has about 62 MiB, the plugins have 52 (38 of them are Python with pydantic), and the C library has 4.
const MAX_BYTES: u64 = 136 << 20;

/// Certificates of authorities, for plugins that may fetch from the network.
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Makes the image for a target in the folder `results`. The C library comes from this machine, so the image is only made
/// on a machine of its own kind.
pub(super) fn make(
    project: &Project,
    tools: &Venv,
    target: Target,
    version: &str,
    files: &Files,
    results: &Path,
) -> Result<()> {
    let name_here = target.processor();
    if name_here != std::env::consts::ARCH {
        say(&format!(
            "  left out: it is made on a machine with a {name_here} processor"
        ));
        return Ok(());
    }
    let root = project.root().join("target/image");
    let share = root.join("usr/local/share/rlf-host");
    empty_folder(&root)?;
    for folder in ["usr/local/bin", "home/rlf", "tmp"] {
        fs::create_dir_all(root.join(folder))?;
    }
    let program = root.join("usr/local/bin").join(host::BINARY);
    fs::copy(&files.program, &program)
        .with_context(|| format!("{} cannot be copied", files.program.display()))?;
    for (from, name) in [
        (&files.licences, LICENCES),
        (&project.root().join("LICENSE"), "LICENSE"),
    ] {
        fs::create_dir_all(&share)?;
        fs::copy(from, share.join(name))
            .with_context(|| format!("{} cannot be copied", from.display()))?;
    }
    copy_folder(&files.plugins, &share.join("plugins"))?;
    copy_folder(&project.root().join("configs"), &share.join("configs"))?;
    let certificates = Path::new("/").join(CERTIFICATES);
    if !certificates.is_file() {
        bail!(
            "there is no {}; on Debian `apt-get install ca-certificates`",
            certificates.display()
        );
    }
    for file in libraries(project, &program)?
        .into_iter()
        .chain([certificates])
    {
        let to = root.join(file.strip_prefix("/").unwrap_or(&file));
        let folder = to.parent().context("a file has a folder")?;
        fs::create_dir_all(folder)?;
        fs::copy(&file, &to).with_context(|| format!("{} cannot be copied", file.display()))?;
    }
    let result = results.join(format!("rlf-host-{version}-{name_here}.image.tar"));
    let mut pack = pack(project, tools, "image");
    pack.arg(&root).arg(&result);
    steps::output(pack.args([&format!("rlf-host:{version}"), target.architecture()]))?;
    let bytes = fs::metadata(&result)?.len();
    say(&format!(
        "  {}, {} MiB",
        project.display(&result),
        bytes >> 20
    ));
    if bytes > MAX_BYTES {
        bail!(
            "the image has {bytes} bytes, and {MAX_BYTES} are allowed (MAX_BYTES in xtask/src/package/image.rs)"
        );
    }
    Ok(())
}

/// The shared libraries that a program loads, by their full paths.
fn libraries(project: &Project, program: &Path) -> Result<Vec<PathBuf>> {
    let listed = steps::output(project.command("ldd").arg(program))?;
    // `libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x..)`, and the loader `/lib64/ld-linux-x86-64.so.2 (0x..)`.
    let words = listed.split_whitespace();
    Ok(words
        .filter(|word| word.starts_with('/'))
        .map(PathBuf::from)
        .collect())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_of_a_program_include_the_c_library_and_the_loader() {
        let project = Project::find().unwrap();
        let found = libraries(&project, Path::new("/bin/sh")).unwrap();
        assert!(
            found
                .iter()
                .any(|file| file.to_string_lossy().contains("/libc.")),
            "{found:?}"
        );
        assert!(
            found
                .iter()
                .any(|file| file.to_string_lossy().contains("/ld-")),
            "{found:?}"
        );
    }
}
