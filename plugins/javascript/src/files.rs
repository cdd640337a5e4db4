//! The run's files: a tree in memory in which `/` and `/tmp` always exist.

use std::collections::{BTreeMap, BTreeSet};

/// The reason why a path cannot be used, named as in Node's errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Missing,
    Directory,
    NotDirectory,
    Exists,
    NotEmpty,
    Full,
}

impl Refused {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Missing => "ENOENT",
            Self::Directory => "EISDIR",
            Self::NotDirectory => "ENOTDIR",
            Self::Exists => "EEXIST",
            Self::NotEmpty => "ENOTEMPTY",
            Self::Full => "ENOSPC",
        }
    }
}

/// Paths are absolute and without `.` or `..`: [`normalize`] makes them so.
#[derive(Debug)]
pub(crate) struct Files {
    files: BTreeMap<String, Vec<u8>>,
    folders: BTreeSet<String>,
    bytes: u64,
    limit: u64,
}

impl Default for Files {
    fn default() -> Self {
        Self {
            files: BTreeMap::new(),
            folders: ["/".to_owned(), "/tmp".to_owned()].into(),
            bytes: 0,
            limit: u64::MAX,
        }
    }
}

impl Files {
    /// Limits all files together to `bytes`; 0 means that only the host's limit applies.
    pub(crate) fn limit(&mut self, bytes: u64) {
        self.limit = if bytes == 0 { u64::MAX } else { bytes };
    }

    pub(crate) fn read(&self, path: &str) -> Result<&[u8], Refused> {
        match self.files.get(path) {
            Some(data) => Ok(data),
            None if self.folders.contains(path) => Err(Refused::Directory),
            None => Err(Refused::Missing),
        }
    }

    pub(crate) fn write(&mut self, path: &str, data: &[u8], append: bool) -> Result<(), Refused> {
        if self.folders.contains(path) {
            return Err(Refused::Directory);
        }
        self.parent(path)?;
        let old = self.files.get(path).map_or(0, Vec::len);
        let freed = if append { 0 } else { old };
        let total = self.bytes - freed as u64 + data.len() as u64;
        if total > self.limit {
            return Err(Refused::Full);
        }
        self.bytes = total;
        let file = self.files.entry(path.to_owned()).or_default();
        if !append {
            file.clear();
        }
        file.extend_from_slice(data);
        Ok(())
    }

    /// Puts a file of the request in place, and makes the folders above it.
    pub(crate) fn place(&mut self, path: &str, data: &[u8]) -> Result<(), Refused> {
        self.make_folder(parent(path), true)?;
        self.write(path, data, false)
    }

    /// Makes the folders above absolute paths that are to be fetched: such a path usually names a system folder,
    /// which programs do not make. If a file is in the way, the program meets the error.
    pub(crate) fn expect(&mut self, fetch: &[String]) {
        for path in fetch.iter().filter(|path| path.starts_with('/')) {
            let _ = self.make_folder(parent(&normalize("/", path)), true);
        }
    }

    pub(crate) fn make_folder(&mut self, path: &str, parents: bool) -> Result<(), Refused> {
        if self.files.contains_key(path) {
            return Err(Refused::Exists);
        }
        if self.folders.contains(path) {
            return if parents {
                Ok(())
            } else {
                Err(Refused::Exists)
            };
        }
        if parents {
            match self.make_folder(parent(path), true) {
                Err(Refused::Exists) => return Err(Refused::NotDirectory),
                made => made?,
            }
        } else {
            self.parent(path)?;
        }
        self.folders.insert(path.to_owned());
        Ok(())
    }

    pub(crate) fn remove(&mut self, path: &str) -> Result<(), Refused> {
        match self.files.remove(path) {
            Some(data) => {
                self.bytes -= data.len() as u64;
                Ok(())
            }
            None if self.folders.contains(path) => Err(Refused::Directory),
            None => Err(Refused::Missing),
        }
    }

    pub(crate) fn remove_folder(&mut self, path: &str) -> Result<(), Refused> {
        if !self.folders.contains(path) {
            return Err(if self.files.contains_key(path) {
                Refused::NotDirectory
            } else {
                Refused::Missing
            });
        }
        if path == "/" || !self.list(path)?.is_empty() {
            return Err(Refused::NotEmpty);
        }
        self.folders.remove(path);
        Ok(())
    }

    /// Size of a file; none for a folder.
    pub(crate) fn size(&self, path: &str) -> Result<Option<usize>, Refused> {
        match self.read(path) {
            Ok(data) => Ok(Some(data.len())),
            Err(Refused::Directory) => Ok(None),
            Err(refused) => Err(refused),
        }
    }

    /// Names in a folder, sorted.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<String>, Refused> {
        if !self.folders.contains(path) {
            return Err(if self.files.contains_key(path) {
                Refused::NotDirectory
            } else {
                Refused::Missing
            });
        }
        let prefix = if path == "/" {
            "/".to_owned()
        } else {
            format!("{path}/")
        };
        let inside = |entry: &&String| {
            entry
                .strip_prefix(&*prefix)
                .is_some_and(|name| !name.is_empty() && !name.contains('/'))
        };
        let mut names: Vec<String> = (self.files.keys().filter(inside))
            .chain(self.folders.iter().filter(inside))
            .map(|entry| entry[prefix.len()..].to_owned())
            .collect();
        names.sort();
        Ok(names)
    }

    /// Checks that the folder of `path` exists.
    fn parent(&self, path: &str) -> Result<(), Refused> {
        let folder = parent(path);
        if self.folders.contains(folder) {
            return Ok(());
        }
        let above = |path: &str| self.files.contains_key(path);
        let mut up = folder;
        while up != "/" {
            if above(up) {
                return Err(Refused::NotDirectory);
            }
            up = parent(up);
        }
        Err(Refused::Missing)
    }
}

/// The folder of `path`.
pub(crate) fn parent(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(at) => &path[..at],
    }
}

/// `path` from the folder `base`, absolute, without `.`, `..` and empty segments. `/..` is `/`.
pub(crate) fn normalize(base: &str, path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    let base = if path.starts_with('/') { "" } else { base };
    for segment in base.split('/').chain(path.split('/')) {
        match segment {
            "" | "." => {}
            ".." => _ = segments.pop(),
            name => segments.push(name),
        }
    }
    format!("/{}", segments.join("/"))
}
