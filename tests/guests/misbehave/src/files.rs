//! Files, as a program with only its standard library finds them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;

use rlf_plugin::{data, error_message, tool};
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

/// Tries every way out of a directory, and returns what it got: nothing, or which way it was.
#[tool]
pub(crate) fn escape_files(Folder { path }: Folder) -> String {
    let folder = Path::new(&path);
    let inside = folder.join("inside.txt");
    if let Err(error) = fs::create_dir(folder.join("d")).and_then(|()| fs::write(&inside, "mine")) {
        return format!("cannot begin: {error}");
    }
    let ways = [
        "..",
        "../",
        "../etc/passwd",
        "../../../../etc/passwd",
        "d/../../etc/passwd",
        "d/../d/../../etc/passwd",
        "./../etc/passwd",
        "d/./../../etc/hostname",
        "../work2",
        "../tmp/escaped",
    ];
    let mut got = Vec::new();
    for way in ways.map(|way| folder.join(way)).into_iter().chain(
        [
            "/etc/passwd",
            "/",
            "/proc/self/environ",
            "/tmp/escaped",
            "//etc/passwd",
        ]
        .map(Into::into),
    ) {
        let mut note = |what: &str, done: bool| {
            if done {
                got.push(format!("{what} {}", way.display()));
            }
        };
        note("read", fs::read(&way).is_ok());
        note("listed", fs::read_dir(&way).is_ok());
        note("wrote", fs::write(&way, "x").is_ok());
        note("made", fs::create_dir(&way).is_ok());
        note("removed", fs::remove_file(&way).is_ok());
        note("moved out", fs::rename(&inside, &way).is_ok());
        note("moved in", fs::rename(&way, folder.join("stolen")).is_ok());
        note("linked out", fs::hard_link(&inside, &way).is_ok());
        note(
            "linked in",
            fs::hard_link(&way, folder.join("hard")).is_ok(),
        );
        #[allow(deprecated)] // The function for WASI is not stable.
        let soft = fs::soft_link(&way, folder.join("soft"));
        note(
            "pointed at",
            soft.is_ok() && fs::read(folder.join("soft")).is_ok(),
        );
    }
    for other in [
        "inside.txt/",
        "INSIDE.TXT",
        "inside.txt/.",
        "d/../inside.txt/..",
        "inside.txt\0",
    ] {
        if fs::read(folder.join(other)).is_ok() {
            got.push(format!("read {other}"));
        }
    }
    match fs::read_to_string(&inside) {
        Ok(text) if text == "mine" && got.is_empty() => "nothing".to_owned(),
        Ok(text) => format!("{got:?}, and its own file says {text:?}"),
        Err(error) => format!("{got:?}, and its own file is gone: {error}"),
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Places {
    /// The slot of the data
    slot: String,
    /// Where to read in it
    paths: Vec<String>,
}

/// Reads places of its data and returns what it got of each.
#[tool]
pub(crate) fn read_data(Places { slot, paths }: Places) -> String {
    let read = |path: &String| match data::read_at(&slot, path, 0, 1_000) {
        Ok(bytes) => format!("{path:?}: {}", String::from_utf8_lossy(&bytes)),
        Err(error) => format!("{path:?} refused: {}", error_message(&error)),
    };
    paths.iter().map(read).collect::<Vec<_>>().join("\n")
}
