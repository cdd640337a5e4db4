//! Files, as a program finds them that uses nothing but its standard library.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;

use rlf_plugin::tool;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Folder {
    /// Where there may be a directory to write in
    path: String,
}

/// Does with a directory what programs do, and says what it saw.
#[tool]
pub(crate) fn use_files(Folder { path }: Folder) -> String {
    work_in(Path::new(&path)).unwrap_or_else(|error| format!("{:?}", error.kind()))
}

fn work_in(folder: &Path) -> io::Result<String> {
    let mut seen = vec![format!("found {:?}", names(folder)?)];
    fs::create_dir_all(folder.join("a/b"))?;
    fs::write(folder.join("a/b/one.txt"), "one")?;
    OpenOptions::new()
        .append(true)
        .open(folder.join("a/b/one.txt"))?
        .write_all(b" and two")?;
    let mut file = File::open(folder.join("a/b/one.txt"))?;
    file.seek(SeekFrom::Start(4))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    seen.push(text);
    fs::rename(folder.join("a"), folder.join("c"))?;
    fs::copy(folder.join("c/b/one.txt"), folder.join("c/two.txt"))?;
    seen.push(format!("{:?}", names(&folder.join("c"))?));
    let metadata = fs::metadata(folder.join("c/two.txt"))?;
    let modified = metadata.modified()?.duration_since(UNIX_EPOCH);
    seen.push(format!(
        "{} bytes at {:?}",
        metadata.len(),
        modified.map_err(io::Error::other)?
    ));
    fs::remove_dir_all(folder.join("c"))?;
    fs::write(folder.join("left.txt"), "left behind")?;
    Ok(seen.join("; "))
}

fn names(folder: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

/// Asks for more files and bytes than there can be, and for files that are none of its business.
#[tool]
pub(crate) fn abuse_files(Folder { path }: Folder) -> String {
    let folder = Path::new(&path);
    let kind = |done: io::Result<()>| done.map_or_else(|error| error.to_string(), |()| "ok".into());
    let sparse = || -> io::Result<()> {
        let mut file = File::create(folder.join("sparse"))?;
        file.seek(SeekFrom::Start(1 << 40))?;
        file.write_all(b"x")
    };
    let resize = || File::create(folder.join("sparse"))?.set_len(1 << 40);
    let endless = || -> io::Result<()> {
        let mut file = File::create(folder.join("endless"))?;
        loop {
            file.write_all(&[0; 4_096])?;
        }
    };
    let million = || -> io::Result<()> {
        (0..1_000_000).try_for_each(|n| File::create(folder.join(n.to_string())).map(drop))
    };
    let outside = |path: &str| fs::read(folder.join(path)).map(drop);
    let seen = [
        ("sparse", kind(sparse())),
        ("resize", kind(resize())),
        ("endless", kind(endless())),
        ("million", kind(million())),
        ("above", kind(outside("../../etc/passwd"))),
        ("passwd", kind(outside("/etc/passwd"))),
    ];
    seen.map(|(what, said)| format!("{what}: {said}"))
        .join("; ")
}
