//! That the host is compiled with one set of features.
//!
//! Cargo unifies the features of whatever one call builds. Tests bring development dependencies, and where one of
//! those turns on a feature of something far below (`libc`, say), everything above that is compiled again, wasmtime and
//! candle included: minutes, that nobody sees a reason for. This compares the two sets before they are built.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use crate::{project::Project, steps};

/// What takes minutes to compile.
const HEAVY: [&str; 4] = ["cranelift-codegen", "wasmtime", "candle-core", "tokenizers"];

/// Fails where building and testing would compile something heavy twice.
pub fn check(project: &Project) -> Result<()> {
    let built = tree(project, "normal,build")?;
    let tested = tree(project, "normal,build,dev")?;
    let different = different(&built, &tested);
    let mut heavy = Vec::new();
    for (package, features) in &different {
        let above = above(project, package)?;
        heavy.extend(
            HEAVY
                .iter()
                .filter(|name| above.contains(**name))
                .map(|name| format!("{name}, because of {package}: {features}")),
        );
    }
    if heavy.is_empty() {
        steps::say(&format!(
            "  {} packages have the same features built and tested; {} light ones have not",
            built.len() - different.len(),
            different.len()
        ));
        return Ok(());
    }
    bail!(
        "building and testing would each compile:\n  - {}\n  mend: turn the feature on for both, in \
         [workspace.dependencies] of Cargo.toml, or leave out the development dependency that asks for it",
        heavy.join("\n  - ")
    )
}

/// Packages (`name vVERSION`) with the sets of features that they are compiled with.
type Tree = BTreeMap<String, BTreeSet<String>>;

fn tree(project: &Project, edges: &str) -> Result<Tree> {
    let mut command = project.cargo("tree");
    command.args(["--locked", "--workspace", "--prefix", "none"]);
    command.args(["--format", "{p}|{f}", "--edges", edges]);
    Ok(parse(&steps::output(&mut command)?))
}

fn parse(text: &str) -> Tree {
    let mut tree = Tree::new();
    for line in text.lines() {
        // ` (*)` marks what was printed before, and a path follows our own packages.
        let line = line.trim_end_matches(" (*)");
        if let Some((package, features)) = line.split_once('|') {
            let mut words = package.split(' ');
            let name = [words.next(), words.next()].map(Option::unwrap_or_default);
            tree.entry(name.join(" "))
                .or_default()
                .insert(features.to_owned());
        }
    }
    tree
}

/// Packages of both trees whose features differ, and how.
fn different(built: &Tree, tested: &Tree) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (package, features) in built {
        let Some(others) = tested.get(package) else {
            continue;
        };
        if features != others {
            let show = |sets: &BTreeSet<String>| {
                sets.iter()
                    .map(|set| format!("[{set}]"))
                    .collect::<Vec<_>>()
                    .join(" and ")
            };
            let how = format!(
                "built with {}, tested with {}",
                show(features),
                show(others)
            );
            found.insert(package.clone(), how);
        }
    }
    found
}

/// Names of the packages that `package` (`name vVERSION`) is part of.
fn above(project: &Project, package: &str) -> Result<BTreeSet<String>> {
    let mut command = project.cargo("tree");
    command.args(["--locked", "--workspace", "--prefix", "none"]);
    command.args(["--format", "{p}|", "--edges", "normal,build", "--invert"]);
    command.arg(package.replace(" v", "@"));
    let names = parse(&steps::output(&mut command)?).into_keys();
    Ok(names
        .filter_map(|package| Some(package.split_once(' ')?.0.to_owned()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_that_only_tests_turn_on_is_found() {
        let built = parse("libc v0.2.1|std\nserde v1.0.0|derive,std\n");
        let tested = parse("libc v0.2.1|extra,std\nserde v1.0.0|derive,std (*)\nproptest v1.0.0|");
        let different = different(&built, &tested);
        assert_eq!(different.len(), 1);
        assert_eq!(
            different["libc v0.2.1"],
            "built with [std], tested with [extra,std]"
        );
    }

    #[test]
    fn our_own_packages_are_told_apart_by_name_and_version() {
        let tree = parse("xtask v0.1.0 (/somewhere/xtask)|default\n");
        assert!(tree.contains_key("xtask v0.1.0"));
    }
}
