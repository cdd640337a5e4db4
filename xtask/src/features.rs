//! Checks that host and guests are each compiled with one set of features.
//!
//! Cargo unifies the features of the packages that one call builds. Tests bring development dependencies. If one of
//! these turns on a feature of a low-level crate (`libc`, say), everything above that crate is compiled again,
//! wasmtime and candle included, which takes minutes without a visible reason. The same happens if the binary alone
//! has other features than the workspace: the quickstart builds it alone, and the tests of a single crate are built
//! beside it. Plugins that are built without the others would have other bytes. This module compares the sets before
//! anything is built.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use crate::{guests, host, project::Project, quickstart, steps};

/// Packages that take minutes to compile.
const HEAVY: [&str; 4] = ["cranelift-codegen", "wasmtime", "candle-core", "tokenizers"];

/// Fails if building, testing and the quickstart would compile a heavy package twice, or give plugins other bytes.
pub fn check(project: &Project) -> Result<()> {
    let built = tree(project, &["--workspace", "--edges", "normal,build"])?;
    let tested = tree(project, &["--workspace", "--edges", "normal,build,dev"])?;
    same(project, "tested", &built, &tested)?;
    let binary = ["--package", host::BINARY, "--edges", "normal,build"];
    same(
        project,
        "built with the binary alone",
        &tree(project, &binary)?,
        &built,
    )?;
    guests_alike(project)
}

/// Fails if the quickstart's plugins would be compiled with other features alone than together with all guests.
fn guests_alike(project: &Project) -> Result<()> {
    let manifest = guests::workspace(project).display().to_string();
    let common = ["--manifest-path", &manifest, "--target", guests::TARGET];
    let edges = ["--edges", "normal,build"];
    let all = tree(project, &[&common[..], &edges, &["--workspace"]].concat())?;
    let names = quickstart::plugin_names(project)?;
    let packages: Vec<_> = names.iter().flat_map(|name| ["--package", name]).collect();
    let some = tree(project, &[&common[..], &edges, &packages].concat())?;
    let different = different(&some, &all);
    if different.is_empty() {
        steps::say(
            "  the quickstart's plugins have the same features built alone and with all guests",
        );
        return Ok(());
    }
    let lines: Vec<_> = different
        .iter()
        .map(|(package, (alone, together))| {
            format!("{package}: {alone} alone, {together} with all guests")
        })
        .collect();
    bail!(
        "the quickstart's plugins would have other bytes if they were built alone:\n  - {}\n  mend: name the features in \
         [workspace.dependencies] of plugins/Cargo.toml, or in the crate of the SDK that depends on the package",
        lines.join("\n  - ")
    )
}

/// Fails if a heavy package has other features in `tree` than in `other`; `how` describes the build of `other`.
fn same(project: &Project, how: &str, tree: &Tree, other: &Tree) -> Result<()> {
    let different = different(tree, other);
    let mut heavy = Vec::new();
    for (package, (features, others)) in &different {
        let above = above(project, package)?;
        heavy.extend(
            HEAVY
                .iter()
                .filter(|name| above.contains(**name))
                .map(|name| format!("{name}, because of {package}: {features} and {others}")),
        );
    }
    if heavy.is_empty() {
        steps::say(&format!(
            "  {} packages have the same features when built and when {how}; {} light ones differ",
            tree.len() - different.len(),
            different.len()
        ));
        return Ok(());
    }
    bail!(
        "these packages would be compiled twice, once when built and once when {how}:\n  - {}\n  mend: turn the feature on for both, in \
         [workspace.dependencies] of Cargo.toml, or leave out the development dependency that asks for it",
        heavy.join("\n  - ")
    )
}

/// Packages (`name vVERSION`), each with the sets of features that it is compiled with.
type Tree = BTreeMap<String, BTreeSet<String>>;

/// The packages that `cargo tree` lists for this selection.
fn tree(project: &Project, selection: &[&str]) -> Result<Tree> {
    let mut command = project.cargo("tree");
    command.args(["--locked", "--prefix", "none", "--format", "{p}|{f}"]);
    command.args(selection);
    Ok(parse(&steps::output(&mut command)?))
}

fn parse(text: &str) -> Tree {
    let mut tree = Tree::new();
    for line in text.lines() {
        // ` (*)` marks packages that were printed before, and our own packages are followed by a path.
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

/// Packages that have other features in `other` than in `tree`, with both sets. A package that is compiled with
/// several sets may have fewer of them in `tree`.
fn different(tree: &Tree, other: &Tree) -> BTreeMap<String, (String, String)> {
    let mut found = BTreeMap::new();
    for (package, features) in tree {
        let Some(others) = other.get(package) else {
            continue;
        };
        if !features.is_subset(others) {
            let show = |sets: &BTreeSet<String>| {
                sets.iter()
                    .map(|set| format!("[{set}]"))
                    .collect::<Vec<_>>()
                    .join(" and ")
            };
            found.insert(package.clone(), (show(features), show(others)));
        }
    }
    found
}

/// Names of the packages that depend on `package` (`name vVERSION`), directly or not.
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
            ("[std]".to_owned(), "[extra,std]".to_owned())
        );
    }

    #[test]
    fn our_own_packages_are_told_apart_by_name_and_version() {
        let tree = parse("xtask v0.1.0 (/somewhere/xtask)|default\n");
        assert!(tree.contains_key("xtask v0.1.0"));
    }
}
