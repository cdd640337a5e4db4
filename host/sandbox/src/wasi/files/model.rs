//! The tree against the plainest model there is, a map from path to content, over random
//! operations: both must allow the same, and hold the same afterwards.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::grant::ScratchFiles;
use super::path::Opening;
use super::tree::{Instant, ROOT, Tree};

const NOW: Instant = Instant::from_secs(1);
const BYTES: u64 = 40;
const ENTRIES: usize = 5;
const DEPTH: usize = 3;

#[derive(Debug, Clone)]
enum Operation {
    CreateDirectory(String),
    Create(String),
    Write(String, u64, usize),
    Resize(String, u64),
    RemoveDirectory(String),
    Unlink(String),
    Rename(String, String),
}

/// Paths of up to four names out of three, so that random ones meet.
fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..=4)
        .prop_map(|names| names.join("/"))
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => path().prop_map(Operation::CreateDirectory),
        3 => path().prop_map(Operation::Create),
        3 => (path(), 0_u64..50, 0_usize..20).prop_map(|(path, at, length)| Operation::Write(path, at, length)),
        1 => (path(), 0_u64..50).prop_map(|(path, size)| Operation::Resize(path, size)),
        1 => path().prop_map(Operation::RemoveDirectory),
        1 => path().prop_map(Operation::Unlink),
        3 => (path(), path()).prop_map(|(old, new)| Operation::Rename(old, new)),
    ]
}

/// Path to content; `None` is a directory.
#[derive(Debug, Clone, PartialEq, Default)]
struct Model(BTreeMap<String, Option<Vec<u8>>>);

impl Model {
    fn is_directory(&self, path: &str) -> bool {
        path.is_empty() || self.0.get(path) == Some(&None)
    }

    fn parent_is_directory(&self, path: &str) -> bool {
        self.is_directory(path.rsplit_once('/').map_or("", |(parent, _)| parent))
    }

    fn below<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a String> {
        let inside = move |other: &str| {
            other
                .strip_prefix(path)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        self.0.keys().filter(move |other| inside(other))
    }

    fn allowed(&self) -> bool {
        let bytes: usize = self.0.values().flatten().map(Vec::len).sum();
        let depth = |path: &String| path.split('/').count();
        bytes as u64 <= BYTES
            && self.0.len() <= ENTRIES
            && self.0.keys().all(|path| depth(path) <= DEPTH)
    }

    /// The model after the operation; `None` if it is not allowed.
    fn after(&self, operation: &Operation) -> Option<Self> {
        let mut next = self.clone();
        match operation {
            Operation::CreateDirectory(path) => {
                if !self.parent_is_directory(path) || self.0.contains_key(path) {
                    return None;
                }
                next.0.insert(path.clone(), None);
            }
            Operation::Create(path) => {
                if !self.parent_is_directory(path) || self.is_directory(path) {
                    return None;
                }
                next.0.entry(path.clone()).or_insert(Some(Vec::new()));
            }
            Operation::Write(path, at, length) => {
                let bytes = next.0.get_mut(path)?.as_mut()?;
                let (at, length) = (*at as usize, *length);
                if length > 0 {
                    bytes.resize(bytes.len().max(at + length), 0);
                    bytes[at..at + length].fill(length as u8);
                }
            }
            Operation::Resize(path, size) => {
                next.0.get_mut(path)?.as_mut()?.resize(*size as usize, 0);
            }
            Operation::RemoveDirectory(path) => {
                if !self.is_directory(path) || self.below(path).next().is_some() {
                    return None;
                }
                next.0.remove(path);
            }
            Operation::Unlink(path) => {
                next.0.remove(path)??;
            }
            Operation::Rename(old, new) => {
                let moved = self.0.get(old)?;
                if !self.parent_is_directory(new) {
                    return None;
                }
                if old == new {
                    return Some(next);
                }
                let fits = match (moved, self.0.get(new)) {
                    (_, None) | (Some(_), Some(Some(_))) => true,
                    (None, Some(None)) => self.below(new).next().is_none(),
                    _ => false,
                };
                if !fits || new.starts_with(&format!("{old}/")) {
                    return None;
                }
                let below: Vec<_> = self.below(old).cloned().collect();
                for path in below.iter().chain([old]) {
                    let content = next.0.remove(path)?;
                    next.0
                        .insert(format!("{new}{}", &path[old.len()..]), content);
                }
            }
        }
        next.allowed().then_some(next)
    }
}

fn apply(tree: &mut Tree, operation: &Operation) -> bool {
    let create = Opening {
        create: true,
        ..Opening::default()
    };
    let done = match operation {
        Operation::CreateDirectory(path) => tree.create_directory_at(ROOT, path, NOW),
        Operation::Create(path) => tree.open_at(ROOT, path, create, NOW).map(drop),
        Operation::Write(path, at, length) => tree.find(ROOT, path).and_then(|inode| {
            let new = vec![*length as u8; *length];
            tree.write(inode, Some(*at), &new, NOW).map(drop)
        }),
        Operation::Resize(path, size) => tree
            .find(ROOT, path)
            .and_then(|inode| tree.resize(inode, *size, NOW)),
        Operation::RemoveDirectory(path) => tree.remove_directory_at(ROOT, path, NOW),
        Operation::Unlink(path) => tree.unlink_file_at(ROOT, path, NOW),
        Operation::Rename(old, new) => tree.rename_at((ROOT, old), (ROOT, new), NOW),
    };
    done.is_ok()
}

/// Everything that listing and reading finds.
fn contents(tree: &Tree) -> Model {
    let mut model = Model::default();
    let mut directories = vec![(String::new(), ROOT)];
    while let Some((prefix, directory)) = directories.pop() {
        let mut after = None;
        while let Some((name, is_directory)) = tree.next_name(directory, after.as_deref()).unwrap()
        {
            let path = format!("{prefix}{name}");
            let inode = tree.find(directory, &name).unwrap();
            let content = if is_directory {
                directories.push((format!("{path}/"), inode));
                None
            } else {
                Some(tree.read(inode, 0, u64::MAX).unwrap().0.to_vec())
            };
            model.0.insert(path, content);
            after = Some(name);
        }
    }
    model
}

proptest! {
    #[test]
    fn the_tree_is_a_map_from_paths_to_content(operations in prop::collection::vec(operation(), 0..60)) {
        let grant = ScratchFiles {
            bytes: BYTES,
            entries: ENTRIES as u64,
            depth: DEPTH as u32,
            ..ScratchFiles::default()
        };
        let mut tree = Tree::new(&grant, NOW);
        let mut model = Model::default();
        for operation in operations {
            let expected = model.after(&operation);
            prop_assert_eq!(apply(&mut tree, &operation), expected.is_some(), "{:?} on {:?}", operation, model);
            model = expected.unwrap_or(model);
            prop_assert_eq!(&contents(&tree), &model, "after {:?}", operation);
        }
        let files = tree.take(|_| true);
        let wanted: BTreeMap<_, _> = model.0.into_iter().filter_map(|(path, content)| Some((path, content?))).collect();
        prop_assert_eq!(files, wanted);
    }
}
