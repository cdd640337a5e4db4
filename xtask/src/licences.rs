//! Licences, sources and banned crates, by `deny.toml`.
//!
//! `cargo deny` does this where it is installed. It takes longer to compile than this whole project, so without it the
//! same file is read here and the part that must never be wrong is checked: no licence beyond the list, no
//! source but crates.io, no banned crate. Duplicate versions are counted.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::{metadata::Metadata, project::Project, spdx, steps};

/// What of `deny.toml` is checked without cargo-deny.
#[derive(Debug, Deserialize)]
struct Rules {
    licenses: Licences,
    bans: Bans,
    sources: Sources,
}

#[derive(Debug, Deserialize)]
struct Licences {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

/// A crate that may have licences beyond the list.
#[derive(Debug, Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    #[serde(default)]
    deny: Vec<Ban>,
}

#[derive(Debug, Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
struct Sources {
    #[serde(rename = "allow-registry")]
    allow_registry: Vec<String>,
}

/// Whether cargo-deny is installed.
pub fn cargo_deny(project: &Project) -> bool {
    steps::output(project.cargo("deny").arg("--version")).is_ok()
}

/// Checks the workspaces of `manifests` against `deny.toml`.
pub fn check(project: &Project, manifests: &[&Path]) -> Result<()> {
    let path = project.root().join("deny.toml");
    let text =
        fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let rules: Rules =
        toml::from_str(&text).with_context(|| format!("{} is not as expected", path.display()))?;
    for manifest in manifests {
        let metadata = Metadata::read(project, manifest)?;
        let problems = problems(&rules, &metadata);
        if !problems.is_empty() {
            bail!(
                "{}: {} packages do not keep deny.toml:\n  - {}\n  mend: choose another crate, or argue for the \
                 licence in deny.toml",
                project.shown(manifest),
                problems.len(),
                problems.join("\n  - ")
            );
        }
        let duplicates = duplicates(&metadata);
        steps::say(&format!(
            "  {}: {} packages keep deny.toml; in more than one version: {}",
            project.shown(manifest),
            metadata.packages.len(),
            if duplicates.is_empty() {
                "none".to_owned()
            } else {
                duplicates.join(", ")
            }
        ));
    }
    Ok(())
}

fn problems(rules: &Rules, metadata: &Metadata) -> Vec<String> {
    let mut problems = Vec::new();
    for package in &metadata.packages {
        let name = format!("{} {}", package.name, package.version);
        if let Some(ban) = rules.bans.deny.iter().find(|ban| ban.name == package.name) {
            problems.push(format!("{name} is banned: {}", ban.reason));
        }
        let allowed = |licence: &str| {
            let exceptions = rules.licenses.exceptions.iter();
            exceptions
                .filter(|exception| exception.name == package.name)
                .flat_map(|exception| &exception.allow)
                .chain(&rules.licenses.allow)
                .any(|allowed| allowed == licence)
        };
        match package.license.as_deref() {
            None => problems.push(format!("{name} states no licence")),
            Some(licence) => match spdx::satisfied(licence, allowed) {
                Ok(true) => {}
                Ok(false) => problems.push(format!("{name} has the licence {licence}")),
                Err(error) => problems.push(format!("{name}: {error}")),
            },
        }
        let Some(source) = &package.source else {
            continue;
        };
        let registry = source.strip_prefix("registry+");
        if !registry.is_some_and(|r| rules.sources.allow_registry.iter().any(|a| a == r)) {
            problems.push(format!("{name} comes from {source}"));
        }
    }
    problems
}

/// Names of packages that are there in more than one version.
fn duplicates(metadata: &Metadata) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in &metadata.packages {
        versions
            .entry(&package.name)
            .or_default()
            .insert(&package.version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    versions.into_keys().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;

    const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

    fn package(name: &str, licence: Option<&str>, source: Option<&str>) -> Package {
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: licence.map(str::to_owned),
            source: source.map(str::to_owned),
            manifest_path: format!("/{name}/Cargo.toml").into(),
            dependencies: Vec::new(),
            targets: Vec::new(),
        }
    }

    fn problems_of(package: Package) -> Vec<String> {
        let rules = toml::from_str(
            r#"
            [licenses]
            allow = ["MIT"]
            exceptions = [{ crate = "special", allow = ["MPL-2.0"] }]
            [bans]
            deny = [{ crate = "banned", reason = "a reason" }]
            [sources]
            allow-registry = ["https://github.com/rust-lang/crates.io-index"]
            "#,
        )
        .unwrap();
        let metadata = Metadata {
            packages: vec![package],
            workspace_members: Vec::new(),
        };
        problems(&rules, &metadata)
    }

    #[test]
    fn an_allowed_licence_from_crates_io_passes() {
        let package = package("a", Some("MIT OR GPL-3.0"), Some(CRATES_IO));
        assert_eq!(problems_of(package), Vec::<String>::new());
    }

    #[test]
    fn other_licences_pass_only_where_excepted() {
        let other = package("a", Some("MPL-2.0"), Some(CRATES_IO));
        assert_eq!(problems_of(other), ["a 1.0.0 has the licence MPL-2.0"]);
        let special = package("special", Some("MPL-2.0"), Some(CRATES_IO));
        assert_eq!(problems_of(special), Vec::<String>::new());
    }

    #[test]
    fn a_missing_licence_a_git_source_and_a_ban_are_found() {
        let unlicensed = package("a", None, Some(CRATES_IO));
        assert_eq!(problems_of(unlicensed), ["a 1.0.0 states no licence"]);
        let git = package("a", Some("MIT"), Some("git+https://example.com/a"));
        assert!(problems_of(git)[0].contains("comes from git+"));
        let banned = package("banned", Some("MIT"), Some(CRATES_IO));
        assert!(problems_of(banned)[0].contains("a reason"));
    }

    #[test]
    fn our_own_deny_toml_is_understood() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deny.toml");
        let rules: Rules = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        assert!(rules.licenses.allow.iter().any(|licence| licence == "MIT"));
    }
}
