//! The arrows between the modules of a crate.

use std::collections::BTreeMap;

use super::source::Module;

/// The maximum number of re-exports followed from a name to its definition.
const MAX_REEXPORTS: usize = 16;

/// For each module, the modules that its code names, with the first line that names each.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) arrows: Vec<BTreeMap<usize, usize>>,
}

impl Graph {
    /// The graph without arrows between a module and its ancestors or descendants.
    pub(super) fn new(modules: &[Module]) -> Self {
        let names = Names {
            modules,
            by_path: (0..)
                .zip(modules)
                .map(|(at, module)| (&*module.path, at))
                .collect(),
        };
        let arrows = (0..modules.len())
            .map(|from| {
                let mut arrows = BTreeMap::new();
                for (path, line) in &modules[from].named {
                    let Some(to) = names.home(from, path, MAX_REEXPORTS) else {
                        continue;
                    };
                    let (here, there) = (&modules[from].path, &modules[to.module].path);
                    if !here.starts_with(there) && !there.starts_with(here) {
                        let first = arrows.entry(to.module).or_insert(*line);
                        *first = (*first).min(*line);
                    }
                }
                arrows
            })
            .collect();
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
    /// Whether the path names the module, and not an item inside it.
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

    /// Whether a path in `module` that begins with `word` is a path of this crate, globs aside.
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
