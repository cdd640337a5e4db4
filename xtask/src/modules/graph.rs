//! The arrows between the modules of a crate.

use std::collections::BTreeMap;

use super::source::Module;

/// The maximum number of re-exports followed from a name to its definition.
const MAX_REEXPORTS: usize = 16;

/// For each module the siblings that it depends on, with the first place that names each.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) arrows: Vec<BTreeMap<usize, Place>>,
}

/// A place in the code of a module or of one of its descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) module: usize,
    pub(super) line: usize,
}

impl Graph {
    /// The graph of arrows between siblings. A name in `a::x` of something in `b::y` is an arrow from `a` to `b`; one of
    /// something in an ancestor or descendant of `a::x` is none.
    pub(super) fn new(modules: &[Module]) -> Self {
        let names = Names {
            modules,
            by_path: (0..)
                .zip(modules)
                .map(|(at, module)| (&*module.path, at))
                .collect(),
        };
        let mut arrows = vec![BTreeMap::new(); modules.len()];
        for (module, here) in modules.iter().enumerate() {
            for (path, line) in &here.named {
                let Some(home) = names.home(module, path, MAX_REEXPORTS) else {
                    continue;
                };
                let there = &modules[home.module];
                let shared = (here.path.iter().zip(&there.path))
                    .take_while(|(ours, theirs)| ours == theirs)
                    .count();
                let sibling = |path: &[String]| names.by_path.get(path.get(..=shared)?).copied();
                if let (Some(from), Some(to)) = (sibling(&here.path), sibling(&there.path)) {
                    let place = Place {
                        module,
                        line: *line,
                    };
                    let arrows: &mut BTreeMap<usize, Place> = &mut arrows[from];
                    let first = arrows.entry(to).or_insert(place);
                    *first = place.min(*first);
                }
            }
        }
        Self { arrows }
    }
}

/// Resolves names as the compiler does, as far as modules are concerned.
struct Names<'crates> {
    modules: &'crates [Module],
    by_path: BTreeMap<&'crates [String], usize>,
}

/// The result of resolving a path.
#[derive(Clone, Copy)]
struct Home {
    module: usize,
    /// True if the path names the module, and not an item inside it.
    whole: bool,
}

impl Names<'_> {
    /// The module that defines the item that `path` names in the module `from`; none if it is outside this crate.
    /// Follows at most `reexports` names that are imported from elsewhere.
    fn home(&self, from: usize, path: &[String], reexports: usize) -> Option<Home> {
        let reexports = reexports.checked_sub(1)?;
        let mut at = from;
        for (index, word) in path.iter().enumerate() {
            let module = &self.modules[at];
            match word.as_str() {
                "crate" => {
                    at = 0;
                    continue;
                }
                "self" => continue,
                "super" => {
                    at = *self.by_path.get(module.path.split_last()?.1)?;
                    continue;
                }
                _ => {}
            }
            if let Some(child) = self.child(at, word) {
                at = child;
                continue;
            }
            if module.items.contains(word) {
                return Some(Home {
                    module: at,
                    whole: false,
                });
            }
            if let Some(import) = module.imports.get(word) {
                // A `use` of another crate with the same name as a module does not mean that module.
                let home = self.home(at, import, reexports)?;
                if !home.whole {
                    return Some(home);
                }
                at = home.module;
                continue;
            }
            for glob in &module.globs {
                // The first word of most globs is another crate: such a word is not searched in the other globs.
                let another = |word: &String| !self.begins_here(at, word);
                if glob.first().is_none_or(another) {
                    continue;
                }
                if let Some(home) = self.home(at, glob, reexports)
                    && home.whole
                    && home.module != at
                    && self.defines(home.module, word)
                {
                    return self.home(home.module, &path[index..], reexports);
                }
            }
            // An unknown first word is another crate or a local name; an unknown later word is an item made by a
            // macro.
            return (index > 0).then_some(Home {
                module: at,
                whole: false,
            });
        }
        Some(Home {
            module: at,
            whole: true,
        })
    }

    /// True if a path in `module` that begins with `word` is a path of this crate, globs aside.
    fn begins_here(&self, module: usize, word: &str) -> bool {
        matches!(word, "crate" | "self" | "super")
            || self.child(module, word).is_some()
            || self.modules[module].imports.contains_key(word)
    }

    fn child(&self, parent: usize, name: &str) -> Option<usize> {
        let mut path = self.modules[parent].path.clone();
        path.push(name.to_owned());
        self.by_path.get(&*path).copied()
    }

    fn defines(&self, module: usize, name: &str) -> bool {
        let module = &self.modules[module];
        module.items.contains(name) || module.imports.contains_key(name)
    }
}
