//! Builds a plugin into a bundle: one file that runs without the plugin's folder and without an installed interpreter.

use std::path::{Path, PathBuf};

use rlf_sandbox::ComponentFile;

use crate::bundle::Contents;
use crate::candidate::Candidate;
use crate::grants::PluginGrants;
use crate::job::Job;
use crate::problem::{LoadRefusal, Problem, ProblemKind};
use crate::python_environment::PythonEnvironment;
use crate::script::ScriptLanguage;

/// A bundle that was built.
#[derive(Debug)]
pub struct BuiltBundle {
    /// The contents of the file.
    pub bytes: Vec<u8>,
    /// BLAKE3 of the bytes, hexadecimal: what a grant pins.
    pub hash: String,
}

/// Builds the bundle of the plugin at `path`: a folder, or a bare component or source file. It contains the plugin's
/// component and manifest. For a source file, the component is the interpreter of the first of `directories` that has one.
/// The bundle then also contains the source and the other files of its folder. No code of the plugin runs.
pub fn plugin(path: &Path, directories: &[PathBuf]) -> Result<BuiltBundle, Problem> {
    let job = Job::at(path, directories, &PluginGrants::default());
    let Candidate {
        component,
        mut contents,
        ..
    } = job.candidate()?;
    // These keys refer to the folder, which the bundle replaces.
    contents.manifest.name = None;
    contents.manifest.component = None;
    built(&contents, &component).map_err(|refusal| refusal.about(&job.alias, path))
}

/// Builds the bundle of an environment in Python: a folder of servers, or one server. The component is the interpreter of
/// the first of `directories` that has one.
pub fn python_environment(path: &Path, directories: &[PathBuf]) -> Result<BuiltBundle, Problem> {
    let job = Job::at(path, directories, &PluginGrants::default());
    let made = PythonEnvironment::new(path.to_owned())
        .read()
        .map_err(|error| {
            let mend = "docs/environments.md has an example";
            LoadRefusal::new(ProblemKind::File, error.to_string(), mend).about(&job.alias, path)
        });
    let contents = Contents {
        environment: Some(made?),
        ..Contents::default()
    };
    let bundle = job
        .interpreter(ScriptLanguage::Python)
        .and_then(|component| built(&contents, &component));
    bundle.map_err(|refusal| refusal.about(&job.alias, path))
}

fn built(contents: &Contents, component: &ComponentFile) -> Result<BuiltBundle, LoadRefusal> {
    let mut bytes = component
        .bytes()
        .map_err(|error| LoadRefusal::from(&error))?;
    contents.attach_to(&mut bytes).map_err(|error| {
        LoadRefusal::new(
            ProblemKind::File,
            error.to_string(),
            "build it with fewer files",
        )
    })?;
    let hash = blake3::hash(&bytes).to_hex().to_string();
    Ok(BuiltBundle { bytes, hash })
}
