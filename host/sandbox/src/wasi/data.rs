//! The `data` interface: read-only data that the operator bound to names.
//!
//! A binding is opened and listed once, when the plugin is loaded. A guest names entries of that list, letter
//! for letter; no other name reaches the file system. Entries are opened through a directory handle that cannot
//! leave its directory. Symbolic links are not followed and not listed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use wasmtime::Result;
use wasmtime::component::HasData;

use crate::bindings::rlf::plugin::data as wit;
use crate::bindings::rlf::plugin::types::Error;

/// Reason that a data binding cannot be opened, listed or read.
#[derive(Debug, thiserror::Error)]
#[error(
    "data `{name}`: cannot read {path}: {source}; correct the path or the permissions of the binding"
)]
pub struct DataError {
    /// Name of the binding.
    pub name: String,
    /// The path that failed.
    pub path: PathBuf,
    source: io::Error,
}

/// Maximum depth of directories. Deeper ones are an error: a loop of mounts, or not data.
const MAX_DEPTH: usize = 32;

/// All data bindings of one plugin.
#[derive(Default)]
pub(crate) struct DataSet {
    bindings: BTreeMap<String, Binding>,
    hash: Option<blake3::Hash>,
}

struct Binding {
    source: Source,
    /// Path in the binding to size, sorted.
    entries: BTreeMap<String, u64>,
}

enum Source {
    File(fs::File),
    Directory(Dir),
}

impl DataSet {
    /// Opens, lists and hashes everything granted.
    pub(crate) fn open(granted: &BTreeMap<String, PathBuf>) -> Result<Self, DataError> {
        let mut bindings = BTreeMap::new();
        let mut hasher = blake3::Hasher::new();
        for (name, path) in granted {
            let failed = |path: &Path, source| DataError {
                name: name.clone(),
                path: path.to_owned(),
                source,
            };
            let binding = Binding::open(path).map_err(|source| failed(path, source))?;
            frame(&mut hasher, name.as_bytes());
            hasher.update(&(binding.entries.len() as u64).to_le_bytes());
            for (entry, size) in &binding.entries {
                frame(&mut hasher, entry.as_bytes());
                hasher.update(&size.to_le_bytes());
                binding
                    .file(entry)
                    .and_then(|file| hasher.update_reader(&*file).map(drop))
                    .map_err(|source| failed(&path.join(entry), source))?;
            }
            bindings.insert(name.clone(), binding);
        }
        let hash = (!bindings.is_empty()).then(|| hasher.finalize());
        Ok(Self { bindings, hash })
    }

    /// Hash of all names, paths and contents; `None` if nothing is bound.
    pub(crate) fn hash(&self) -> Option<blake3::Hash> {
        self.hash
    }

    fn binding(&self, name: &str) -> Result<&Binding, Error> {
        self.bindings.get(name).ok_or_else(|| {
            Error::NotFound(format!(
                "no data is bound to `{name}`; the operator's grants bind it"
            ))
        })
    }

    fn read(
        &self,
        name: &str,
        path: &str,
        offset: u64,
        length: u64,
        most: u64,
    ) -> Result<Vec<u8>, Error> {
        let binding = self.binding(name)?;
        let size = *binding.entries.get(path).ok_or_else(|| {
            Error::NotFound(format!(
                "data `{name}` has no entry `{path}`; `entries` lists them"
            ))
        })?;
        let wanted = length.min(size.saturating_sub(offset));
        if wanted > most {
            return Err(Error::Exhausted(format!(
                "{wanted} bytes in one read; at most {most} are allowed"
            )));
        }
        // No path of the machine in the text: it goes to the guest.
        binding.read(path, offset, wanted).map_err(|error| {
            tracing::warn!(name, path, %error, "data cannot be read");
            Error::Unavailable(format!(
                "entry `{path}` of data `{name}` cannot be read: {}",
                error.kind()
            ))
        })
    }
}

/// Adds bytes with their length, so that they cannot be confused with the next ones.
fn frame(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher
        .update(&(bytes.len() as u64).to_le_bytes())
        .update(bytes);
}

/// A file of a binding: the one that is bound, or one opened in the bound directory.
enum Opened<'a> {
    Bound(&'a fs::File),
    Inside(fs::File),
}

impl std::ops::Deref for Opened<'_> {
    type Target = fs::File;

    fn deref(&self) -> &fs::File {
        match self {
            Self::Bound(file) => file,
            Self::Inside(file) => file,
        }
    }
}

impl Binding {
    fn open(path: &Path) -> io::Result<Self> {
        // The operator wrote this path, so links in it are followed.
        let metadata = fs::metadata(path)?;
        if metadata.is_dir() {
            let directory = Dir::open_ambient_dir(path, ambient_authority())?;
            let mut entries = BTreeMap::new();
            list(&directory, "", 0, &mut entries)?;
            return Ok(Self {
                source: Source::Directory(directory),
                entries,
            });
        }
        if !metadata.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "neither a file nor a directory",
            ));
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "its name is not UTF-8"))?;
        let file = fs::File::open(path)?;
        let entries = BTreeMap::from([(name.to_owned(), file.metadata()?.len())]);
        Ok(Self {
            source: Source::File(file),
            entries,
        })
    }

    fn file(&self, path: &str) -> io::Result<Opened<'_>> {
        match &self.source {
            Source::File(file) => Ok(Opened::Bound(file)),
            Source::Directory(directory) => {
                let mut options = cap_std::fs::OpenOptions::new();
                options.read(true);
                let file = directory.open_with(path, &options)?.into_std();
                // It was a file when it was listed. Something else may block or never end.
                if !file.metadata()?.is_file() {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidInput,
                        "no longer a regular file",
                    ));
                }
                Ok(Opened::Inside(file))
            }
        }
    }

    fn read(&self, path: &str, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let file = self.file(path)?;
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

/// Lists regular files with `/` between names, independent of the machine's separator.
fn list(
    directory: &Dir,
    prefix: &str,
    depth: usize,
    entries: &mut BTreeMap<String, u64>,
) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("deeper than {MAX_DEPTH} directories"),
        ));
    }
    for entry in directory.entries()? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let Ok(name) = entry.file_name().into_string() else {
            tracing::warn!(name = ?entry.file_name(), "left out of the data: its name is not UTF-8");
            continue;
        };
        let path = format!("{prefix}{name}");
        if kind.is_dir() {
            list(&entry.open_dir()?, &format!("{path}/"), depth + 1, entries)?;
        } else if kind.is_file() {
            entries.insert(path, entry.metadata()?.len());
        } else {
            tracing::warn!(path, "left out of the data: neither a file nor a directory");
        }
    }
    Ok(())
}

/// View of a store for the data interface.
pub(crate) struct DataView<'a> {
    pub(crate) data: &'a DataSet,
    /// Maximum number of bytes of one read.
    pub(crate) max_read_bytes: u64,
}

/// Gives the linker access to [`DataView`].
pub(crate) struct HasDataSet;

impl HasData for HasDataSet {
    type Data<'a> = DataView<'a>;
}

impl wit::Host for DataView<'_> {
    fn entries(&mut self, name: String) -> Result<Result<Vec<wit::Entry>, Error>> {
        let entry = |(path, size): (&String, &u64)| wit::Entry {
            path: path.clone(),
            size: *size,
        };
        Ok(self
            .data
            .binding(&name)
            .map(|binding| binding.entries.iter().map(entry).collect()))
    }

    fn read(
        &mut self,
        name: String,
        path: String,
        offset: u64,
        length: u32,
    ) -> Result<Result<Vec<u8>, Error>> {
        let most = self.max_read_bytes;
        Ok(self
            .data
            .read(&name, &path, offset, u64::from(length), most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(path: &Path) -> DataSet {
        DataSet::open(&BTreeMap::from([("corpus".to_owned(), path.to_owned())])).unwrap()
    }

    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("data/deep")).unwrap();
        fs::write(root.path().join("secret"), "secret").unwrap();
        fs::write(root.path().join("data/b.txt"), "0123456789").unwrap();
        fs::write(root.path().join("data/deep/a.txt"), "deep").unwrap();
        std::os::unix::fs::symlink("../secret", root.path().join("data/link")).unwrap();
        std::os::unix::fs::symlink("..", root.path().join("data/up")).unwrap();
        root
    }

    #[test]
    fn only_listed_entries_can_be_read() {
        let root = tree();
        let data = bound(&root.path().join("data"));
        let listed: Vec<_> = data.bindings["corpus"]
            .entries
            .iter()
            .map(|(path, size)| (path.as_str(), *size))
            .collect();
        assert_eq!(listed, [("b.txt", 10), ("deep/a.txt", 4)]);
        assert_eq!(
            data.read("corpus", "deep/a.txt", 0, 100, 100).unwrap(),
            b"deep"
        );
        for escape in [
            "../secret",
            "deep/../../secret",
            "/etc/passwd",
            "link",
            "up/secret",
            "b.txt/",
            "./b.txt",
            "B.TXT",
            "deep",
            "",
            ".",
            "..",
            "b.txt\0",
            "deep//a.txt",
        ] {
            let refused = data.read("corpus", escape, 0, 100, 100).unwrap_err();
            assert!(
                matches!(refused, Error::NotFound(_)),
                "{escape:?}: {refused:?}"
            );
        }
        assert!(matches!(
            data.read("other", "b.txt", 0, 1, 1),
            Err(Error::NotFound(_))
        ));
    }

    #[test]
    fn a_file_replaced_by_a_link_after_loading_leads_nowhere() {
        let root = tree();
        let data = bound(&root.path().join("data"));
        fs::remove_file(root.path().join("data/b.txt")).unwrap();
        std::os::unix::fs::symlink("../secret", root.path().join("data/b.txt")).unwrap();
        assert!(matches!(
            data.read("corpus", "b.txt", 0, 6, 100),
            Err(Error::Unavailable(_))
        ));
    }

    #[test]
    fn reads_are_exact_and_bounded() {
        let root = tree();
        let data = bound(&root.path().join("data/b.txt"));
        assert_eq!(data.read("corpus", "b.txt", 2, 3, 100).unwrap(), b"234");
        assert_eq!(
            data.read("corpus", "b.txt", 8, u64::from(u32::MAX), 100)
                .unwrap(),
            b"89"
        );
        assert_eq!(data.read("corpus", "b.txt", u64::MAX, 1, 100).unwrap(), b"");
        assert!(matches!(
            data.read("corpus", "b.txt", 0, 10, 9),
            Err(Error::Exhausted(_))
        ));
    }

    #[test]
    fn the_hash_sees_every_byte_path_and_name() {
        let root = tree();
        let hash = |path: &str| bound(&root.path().join(path)).hash();
        let before = hash("data");
        assert_eq!(before, hash("data"));
        fs::write(root.path().join("data/b.txt"), "0123456780").unwrap();
        let edited = hash("data");
        assert_ne!(before, edited);
        fs::rename(
            root.path().join("data/b.txt"),
            root.path().join("data/c.txt"),
        )
        .unwrap();
        assert_ne!(edited, hash("data"));
        assert_eq!(DataSet::open(&BTreeMap::new()).unwrap().hash(), None);
    }

    #[test]
    fn a_missing_path_is_named_with_its_binding() {
        let grants = BTreeMap::from([("corpus".to_owned(), PathBuf::from("/nowhere/at/all"))]);
        let message = DataSet::open(&grants).err().unwrap().to_string();
        assert!(
            message.starts_with("data `corpus`: cannot read /nowhere/at/all"),
            "{message}"
        );
    }
}
