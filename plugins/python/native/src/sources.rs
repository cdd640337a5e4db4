//! The archives that are compiled, fixed by their SHA-256.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::{
    commands::{command, run},
    mirrors::mirrors,
};

/// One archive: its name in the work folder, its SHA-256, and where it can be had.
pub(crate) struct Archive {
    pub(crate) name: &'static str,
    pub(crate) sha256: &'static str,
    /// Its path in Debian's pool, which keeps the archives of a release for as long as it keeps the release.
    pool: &'static str,
    /// Its authors' address of the same file.
    upstream: Option<&'static str>,
}

pub(crate) const PYTHON: Archive = Archive {
    name: "Python-3.13.5.tar.xz",
    sha256: "93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640",
    pool: "pool/main/p/python3.13/python3.13_3.13.5.orig.tar.xz",
    upstream: Some("https://www.python.org/ftp/python/3.13.5/Python-3.13.5.tar.xz"),
};

pub(crate) const WASI_LIBC: Archive = Archive {
    name: "wasi-libc.deb",
    sha256: "b7716260051d289248b7667f81fa2792c125d888ff51da3fa09c6272cc0bd11d",
    pool: "pool/main/w/wasi-libc/wasi-libc_0.0~git20241209.574b88d-2_all.deb",
    upstream: None,
};

pub(crate) const ZLIB: Archive = Archive {
    name: "zlib-1.3.1.tar.gz",
    sha256: "60dd315c07f616887caa029408308a018ace66e3d142726a97db164b3b8f69fb",
    pool: "pool/main/z/zlib/zlib_1.3.dfsg+really1.3.1.orig.tar.gz",
    upstream: None,
};

pub(crate) const BZIP2: Archive = Archive {
    name: "bzip2-1.0.8.tar.gz",
    sha256: "ab5a03176ee106d3f0fa90e381da478ddae405918153cca248e682cd0c4a2269",
    pool: "pool/main/b/bzip2/bzip2_1.0.8.orig.tar.gz",
    upstream: Some("https://sourceware.org/pub/bzip2/bzip2-1.0.8.tar.gz"),
};

/// The archive in `folder`, downloaded if it is not there.
pub(crate) fn fetch(archive: &Archive, folder: &Path) -> Result<PathBuf> {
    let path = folder.join(archive.name);
    if path.exists() && digest(&path)? == archive.sha256 {
        return Ok(path);
    }
    fs::create_dir_all(folder)?;
    let part = folder.join(format!("{}.part", archive.name));
    let mut failures = Vec::new();
    let urls = mirrors()
        .into_iter()
        .map(|mirror| format!("{mirror}/{}", archive.pool))
        .chain(archive.upstream.map(str::to_owned));
    for url in urls {
        eprintln!("  {url}");
        let mut curl = command("curl");
        curl.args([
            "--fail",
            "--silent",
            "--show-error",
            "--location",
            "--retry",
            "3",
            "--output",
        ]);
        match run(curl.arg(&part).arg(&url)).and_then(|()| digest(&part)) {
            Ok(found) if found == archive.sha256 => {
                fs::rename(&part, &path)?;
                return Ok(path);
            }
            Ok(found) => failures.push(format!("{url}: its SHA-256 is {found}")),
            Err(error) => failures.push(format!("{url}: {error:#}")),
        }
    }
    bail!(
        "{} was not found; name a mirror of Debian in RLF_DEBIAN_MIRROR, or put the file with SHA-256 {} at {}\n  {}",
        archive.name,
        archive.sha256,
        path.display(),
        failures.join("\n  ")
    )
}

fn digest(path: &Path) -> Result<String> {
    let data = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    Ok(hex(&Sha256::digest(data)))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}
