//! Maps the file names of a request to paths in the file system of its program. That file system is in memory, is empty
//! at the start and belongs to the program alone, so no name reaches anything else.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::answer::Refusal;

/// Limits of common operating systems.
const MAX_PATH_BYTES: usize = 4_096;
const MAX_SEGMENT_BYTES: usize = 255;

/// The reason why a file name cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    #[error("a path cannot have a NUL in it")]
    Nul,
    #[error("a path has at most {MAX_PATH_BYTES} bytes")]
    TooLong,
    #[error("the path leaves the program's root by `..`")]
    LeavesRoot,
    #[error("a name in a path has at most {MAX_SEGMENT_BYTES} bytes")]
    LongName,
    #[error("the path names no file")]
    NoFile,
}

/// Turns a request's file name into a path from the root, where programs start: `a.txt`, `/a.txt` and `x/../a.txt` are
/// one file.
pub(crate) fn path(name: &str) -> Result<String, PathError> {
    if name.contains('\0') {
        return Err(PathError::Nul);
    }
    if name.len() > MAX_PATH_BYTES {
        return Err(PathError::TooLong);
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in name.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop().ok_or(PathError::LeavesRoot)?;
            }
            long if long.len() > MAX_SEGMENT_BYTES => {
                return Err(PathError::LongName);
            }
            plain => segments.push(plain),
        }
    }
    if segments.is_empty() {
        return Err(PathError::NoFile);
    }
    Ok(segments.join("/"))
}

/// The files of a request, decoded, by path. Files without content (null) are left out, as in SandboxFusion.
pub(crate) fn files(
    given: BTreeMap<String, Option<String>>,
    most: usize,
) -> Result<BTreeMap<String, Vec<u8>>, Refusal> {
    let invalid =
        |name: &str, what: String| Refusal::invalid("value_error", &["files", name], what);
    if given.len() > most {
        let what = format!("{} files; at most {most} are allowed", given.len());
        return Err(Refusal::invalid("too_long", &["files"], what));
    }
    let mut files = BTreeMap::new();
    for (name, content) in given {
        let Some(mut content) = content else { continue };
        let path = path(&name).map_err(|error| invalid(&name, error.to_string()))?;
        // Many encoders wrap lines.
        if content.contains(char::is_whitespace) {
            content.retain(|c| !c.is_whitespace());
        }
        let data = STANDARD
            .decode(content)
            .map_err(|error| invalid(&name, format!("the content is not base64: {error}")))?;
        if files.insert(path, data).is_some() {
            return Err(invalid(
                &name,
                "another name in `files` is the same file".into(),
            ));
        }
    }
    Ok(files)
}

/// The files to return after a run.
#[derive(Debug)]
pub(crate) struct Fetch {
    /// Each requested name, with its path.
    names: Vec<(String, String)>,
}

impl Fetch {
    pub(crate) fn new(names: Vec<String>, most: usize) -> Result<Self, Refusal> {
        if names.len() > most {
            let what = format!("{} files; at most {most} are allowed", names.len());
            return Err(Refusal::invalid("too_long", &["fetch_files"], what));
        }
        let with_path = |(at, name): (usize, String)| {
            path(&name)
                .map_err(|error| {
                    let place = ["fetch_files", &at.to_string()];
                    Refusal::invalid("value_error", &place, error.to_string())
                })
                .map(|path| (name, path))
        };
        let names: Result<_, _> = names.into_iter().enumerate().map(with_path).collect();
        Ok(Self { names: names? })
    }

    /// Each path once. It begins with `/` if it was requested from the root, because its folder then exists at the
    /// start.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths: BTreeMap<&str, bool> = BTreeMap::new();
        for (name, path) in &self.names {
            *paths.entry(path).or_default() |= name.starts_with('/');
        }
        let written = |(path, from_root): (&str, bool)| {
            let root = if from_root { "/" } else { "" };
            format!("{root}{path}")
        };
        paths.into_iter().map(written).collect()
    }

    /// The found files in base64, under the requested names.
    pub(crate) fn answer(&self, found: &[(String, Vec<u8>)]) -> BTreeMap<String, String> {
        let data: BTreeMap<&str, &[u8]> = found
            .iter()
            .map(|(path, data)| (path.trim_start_matches('/'), data.as_slice()))
            .collect();
        let answered = self.names.iter().filter_map(|(name, path)| {
            let data = data.get(path.as_str())?;
            Some((name.clone(), STANDARD.encode(data)))
        });
        answered.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_become_paths_from_the_root() {
        for (name, expected) in [
            ("a.txt", "a.txt"),
            ("/mnt/b", "mnt/b"),
            ("./dir//c", "dir/c"),
            ("x/../a", "a"),
            ("a/b/", "a/b"),
            ("...", "..."),
            ("C:\\x", "C:\\x"),
        ] {
            assert_eq!(path(name).as_deref(), Ok(expected), "{name}");
        }
        for name in [
            "",
            "/",
            ".",
            "a/..",
            "..",
            "/..",
            "../x",
            "a/../../x",
            "/../etc/passwd",
            "a\0b",
        ] {
            assert!(path(name).is_err(), "{name:?}");
        }
        assert!(path(&"x".repeat(256)).is_err());
        assert!(path(&"x/".repeat(3_000)).is_err());
    }

    proptest! {
        #[test]
        fn no_name_leads_out(name in "[a./\\x00 ]{0,24}") {
            if let Ok(path) = path(&name) {
                prop_assert!(!path.is_empty() && !path.contains('\0'));
                prop_assert!(path.split('/').all(|s| !matches!(s, "" | "." | "..")));
            }
        }
    }

    fn decoded(pairs: &[(&str, Option<&str>)]) -> Result<BTreeMap<String, Vec<u8>>, Refusal> {
        let pairs = pairs
            .iter()
            .map(|(name, content)| ((*name).to_owned(), content.map(str::to_owned)));
        files(pairs.collect(), 3)
    }

    #[test]
    fn contents_are_decoded_and_nulls_left_out() {
        let found = decoded(&[
            ("a", Some("aGVs\nbG8=\n")),
            ("/b/c", Some("")),
            ("gone", None),
        ])
        .unwrap();
        let expected = [
            ("a".to_owned(), b"hello".to_vec()),
            ("b/c".to_owned(), Vec::new()),
        ];
        assert_eq!(found, BTreeMap::from(expected));
        for bad in [
            decoded(&[("a", Some("a"))]),
            decoded(&[("a", Some("aGVsbG8"))]),
            decoded(&[("../a", Some(""))]),
            decoded(&[("a", Some("")), ("/a", Some(""))]),
            decoded(&[("a", None), ("b", None), ("c", None), ("d", None)]),
        ] {
            assert_eq!(bad.unwrap_err().status(), 422);
        }
    }

    #[test]
    fn files_come_back_under_the_names_they_were_asked_by() {
        let names = ["a", "/a", "gone", "d/e"].map(str::to_owned).to_vec();
        let fetch = Fetch::new(names, 10).unwrap();
        assert_eq!(fetch.paths(), ["/a", "d/e", "gone"]);
        let found = [
            ("a".to_owned(), b"hi".to_vec()),
            ("/d/e".to_owned(), vec![0xff]),
        ];
        let answered = fetch.answer(&found);
        let expected = [("/a", "aGk="), ("a", "aGk="), ("d/e", "/w==")];
        assert_eq!(
            answered,
            expected
                .map(|(name, data)| (name.to_owned(), data.to_owned()))
                .into()
        );
        assert!(Fetch::new(vec!["a/../..".to_owned()], 10).is_err());
    }
}
