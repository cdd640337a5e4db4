//! Paths as guests write them.

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

/// Maximum length of the name of a file or directory, in bytes, as on Linux.
const MAX_NAME_BYTES: usize = 255;
/// Maximum length of a path, in bytes, as on Linux.
const MAX_PATH_BYTES: usize = 4_096;

/// Flags of `open-at`.
#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools)] // as WASI has them
pub(crate) struct Opening {
    pub(crate) create: bool,
    pub(crate) exclusive: bool,
    pub(crate) truncate: bool,
    /// True if the path must lead to a directory.
    pub(crate) directory: bool,
    /// True if the file is opened for writing.
    pub(crate) write: bool,
}

/// A relative path, checked as far as it can be without a tree.
pub(crate) struct Path<'a> {
    /// The last name, which may be `.` or `..`.
    pub(crate) last: &'a str,
    before: &'a str,
    /// True if the path ends in `/`, so that it must lead to a directory.
    pub(crate) slash: bool,
}

impl<'a> Path<'a> {
    /// Parses a path. Refuses an absolute path, which would leave the directory that it is relative to. (`..` may or
    /// may not leave it: the tree knows.)
    pub(crate) fn parse(path: &'a str) -> Result<Self, ErrorCode> {
        if path.len() > MAX_PATH_BYTES {
            return Err(ErrorCode::NameTooLong);
        }
        if path.is_empty() {
            return Err(ErrorCode::NoEntry);
        }
        if path.starts_with('/') {
            return Err(ErrorCode::NotPermitted);
        }
        if path.contains('\0') {
            return Err(ErrorCode::Invalid);
        }
        if path.split('/').any(|name| name.len() > MAX_NAME_BYTES) {
            return Err(ErrorCode::NameTooLong);
        }
        let names = path.trim_end_matches('/');
        let (before, last) = names.rsplit_once('/').unwrap_or(("", names));
        Ok(Self {
            last,
            before,
            slash: names.len() < path.len(),
        })
    }

    /// The names before the last.
    pub(crate) fn before(&self) -> impl Iterator<Item = &'a str> {
        self.before.split('/').filter(|name| !name.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_names_a_last_one_and_perhaps_a_slash() {
        let parsed = |text| {
            let path = Path::parse(text).unwrap();
            (path.before().collect::<Vec<_>>(), path.last, path.slash)
        };
        assert_eq!(parsed("a"), (vec![], "a", false));
        assert_eq!(parsed("a//b///c"), (vec!["a", "b"], "c", false));
        assert_eq!(parsed("a/../b//"), (vec!["a", ".."], "b", true));
        assert_eq!(parsed("."), (vec![], ".", false));
        assert_eq!(parsed("./"), (vec![], ".", true));
    }

    #[test]
    fn paths_that_lead_nowhere_are_refused() {
        let refused = |text: &str| Path::parse(text).err().unwrap();
        assert_eq!(refused(""), ErrorCode::NoEntry);
        assert_eq!(refused("/"), ErrorCode::NotPermitted);
        assert_eq!(refused("/etc/passwd"), ErrorCode::NotPermitted);
        assert_eq!(refused("a\0b"), ErrorCode::Invalid);
        assert_eq!(refused(&"n".repeat(256)), ErrorCode::NameTooLong);
        assert_eq!(refused(&"n/".repeat(3_000)), ErrorCode::NameTooLong);
        assert!(Path::parse(&"n".repeat(255)).is_ok());
    }
}
