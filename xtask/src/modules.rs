//! The lint against cycles of modules: modules of one crate depend on each other in one direction.
//!
//! The graph of a crate has an arrow from a module to each of its siblings (the other children of its parent) that it
//! depends on: its code, or the code of a descendant, names that sibling or a descendant of it, in a `use` or in a path.
//! A name that a module re-exports counts for the module that defines it, so `crate::Name` is an arrow to where `Name`
//! is written. A module and its ancestors or descendants may name each other. Test code does not count.

mod cycles;
mod graph;
mod source;
mod tokens;

use std::{fmt::Write as _, path::Path};

use anyhow::{Result, bail};

use crate::{guests, metadata::Metadata, project::Project, steps, with_c};

/// Fails if the modules of any crate of the host, the guests or the SDK depend on each other in a circle.
pub fn check(project: &Project) -> Result<()> {
    let mut crates = 0;
    let mut findings = Vec::new();
    let workspaces = [
        project.root().join("Cargo.toml"),
        guests::workspace(project),
        with_c::workspace(project),
    ];
    let mut roots: Vec<_> = Vec::new();
    for manifest in workspaces.iter().filter(|manifest| manifest.is_file()) {
        for package in Metadata::read(project, manifest)?.packages {
            // Packages that come from no registry are ours: members of the workspace, and the SDK below the guests.
            if package.source.is_none() {
                roots.extend(package.targets.into_iter().map(|target| target.src_path));
            }
        }
    }
    roots.sort();
    roots.dedup();
    for root in roots {
        crates += 1;
        findings.extend(cycles_of(project, &root)?);
    }
    if findings.is_empty() {
        steps::say(&format!("  {crates} crates without a cycle of modules"));
        return Ok(());
    }
    bail!(
        "{} cycles of modules in {crates} crates:\n{}\n  mend: move what both sides need into a module below them",
        findings.len(),
        findings.join("\n")
    )
}

/// A description of each cycle in the crate whose root file is `root`.
fn cycles_of(project: &Project, root: &Path) -> Result<Vec<String>> {
    let modules = source::read(root)?;
    let graph = graph::Graph::new(&modules);
    let name = project.display(root);
    Ok(cycles::find(&graph)
        .iter()
        .map(|cycle| {
            let members: Vec<_> = cycle
                .members
                .iter()
                .map(|&module| modules[module].name())
                .collect();
            let mut text = format!(
                "  {name}: {} modules form a cycle ({}); the shortest way around:",
                members.len(),
                members.join(", ")
            );
            for arrow in &cycle.shortest {
                _ = write!(
                    text,
                    "\n    {} -> {}  {}:{}",
                    modules[arrow.from].name(),
                    modules[arrow.to].name(),
                    project.display(&modules[arrow.place.module].file),
                    arrow.place.line
                );
            }
            text
        })
        .collect())
}
