//! Finds the guests whose sources are in this checkout.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};

use crate::{
    guests::{Family, Guest, Maker, workspace},
    metadata::{Metadata, Package, Target},
    project::Project,
    python, with_c,
};

/// Inputs of every component besides its crate and the crate's path dependencies.
const SHARED_INPUTS: [&str; 4] = [
    "plugins/Cargo.lock",
    "plugins/Cargo.toml",
    "rust-toolchain.toml",
    "wit",
];

/// All guests, sorted by name.
pub fn guests(project: &Project) -> Result<Vec<Guest>> {
    let mut guests = crates(project, &workspace(project), false)?;
    let with_c = with_c::workspace(project);
    if with_c.is_file() {
        guests.extend(crates(project, &with_c, true)?);
    }
    guests.extend(python::guest(project));
    guests.extend(python::science_guest(project));
    guests.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(guests)
}

/// The guests of one workspace.
fn crates(project: &Project, manifest: &Path, with_c: bool) -> Result<Vec<Guest>> {
    let metadata = Metadata::read(project, manifest)?;
    let mut guests = Vec::new();
    for package in metadata.members() {
        let is_guest = |target: &&Target| target.crate_types.iter().any(|kind| kind == "cdylib");
        let Some(target) = package.targets.iter().find(is_guest) else {
            continue;
        };
        let folder = package.folder();
        let lies_in = |family: &Family| folder.parent() == Some(&*family.sources(project));
        let Some(family) = Family::ALL.into_iter().find(lies_in) else {
            bail!(
                "the guest {} is in {}: move it to plugins/ or, if it is for tests, to tests/guests/",
                package.name,
                project.display(folder)
            );
        };
        let name = folder.file_name().unwrap_or_default();
        let artifact = format!("{}.wasm", target.name.replace('-', "_"));
        let package_name = package.name.clone();
        let mut inputs = inputs(project.root(), package, &metadata.packages);
        if with_c {
            inputs.push(with_c::FOLDER.into());
        }
        guests.push(Guest {
            name: name.to_string_lossy().into_owned(),
            family,
            maker: if with_c {
                Maker::WithC {
                    package: package_name,
                    artifact,
                }
            } else {
                Maker::Cargo {
                    package: package_name,
                    artifact,
                }
            },
            source: folder.to_owned(),
            inputs,
        });
    }
    Ok(guests)
}

/// The crate, all its path dependencies, direct or not, what it includes, and the inputs that all guests share.
fn inputs(root: &Path, package: &Package, packages: &[Package]) -> Vec<PathBuf> {
    let mut found = BTreeSet::from([package.folder()]);
    let mut open = vec![package];
    while let Some(package) = open.pop() {
        let dependencies = package.dependencies.iter();
        for path in dependencies.filter_map(|dependency| dependency.path.as_deref()) {
            if found.insert(path) {
                open.extend(packages.iter().find(|package| package.folder() == path));
            }
        }
    }
    let mut inputs: Vec<PathBuf> = found
        .into_iter()
        .map(|path| path.strip_prefix(root).unwrap_or(path).to_owned())
        .chain(package.metadata.iter().flat_map(|own| own.inputs.clone()))
        .chain(SHARED_INPUTS.map(PathBuf::from))
        .collect();
    inputs.sort();
    inputs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Dependency, OwnMetadata};

    fn package(folder: &str, depends_on: &[&str]) -> Package {
        Package {
            id: folder.to_owned(),
            name: folder.to_owned(),
            version: "0.1.0".to_owned(),
            source: None,
            manifest_path: format!("/rlf/{folder}/Cargo.toml").into(),
            dependencies: depends_on
                .iter()
                .map(|folder| Dependency {
                    path: Some(format!("/rlf/{folder}").into()),
                })
                .collect(),
            targets: Vec::new(),
            metadata: None,
        }
    }

    #[test]
    fn the_sdk_and_its_macros_are_inputs_of_a_plugin() {
        let mut packages = [
            package("plugins/adder", &["sdk/rust"]),
            package("sdk/rust", &["sdk/rust/macros"]),
            package("sdk/rust/macros", &[]),
            package("plugins/other", &[]),
        ];
        packages[0].metadata = Some(OwnMetadata {
            inputs: vec!["sdk/javascript/lib".into()],
        });
        let inputs = inputs(Path::new("/rlf"), &packages[0], &packages);
        let has = |path: &str| inputs.contains(&path.into());
        assert!(has("plugins/adder") && has("sdk/rust") && has("sdk/rust/macros"));
        assert!(has("wit") && has("plugins/Cargo.lock") && has("rust-toolchain.toml"));
        assert!(has("sdk/javascript/lib"));
        assert!(!has("plugins/other"));
    }
}
