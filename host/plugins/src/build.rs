//! Makes one file of a plugin, which needs neither its folder nor an interpreter where it is used.

use std::path::{Path, PathBuf};

use rlf_sandbox::ComponentFile;

use crate::bundle::Contents;
use crate::candidate::Candidate;
use crate::discovery::MAX_COMPONENT_BYTES;
use crate::grants::PluginGrants;
use crate::job::Job;
use crate::problem::{LoadRefusal, Problem, ProblemKind};
use crate::python_environment::PythonEnvironment;
use crate::script::ScriptLanguage;

/// A plugin in one file.
#[derive(Debug)]
pub struct BuiltPlugin {
    /// The contents of the file.
    pub bytes: Vec<u8>,
    /// BLAKE3 of the bytes, hexadecimal: what a grant pins.
    pub hash: String,
}

/// Returns the file of the plugin at `path`: a folder, or a bare component or source file. It has the plugin's component
/// and manifest. For a source file, the component is the interpreter of the first of `directories` that has one, and the
/// file also has the source and what lies beside it. Nothing of the plugin is run.
pub fn plugin(path: &Path, directories: &[PathBuf]) -> Result<BuiltPlugin, Problem> {
    let job = Job::at(path, directories, &PluginGrants::default());
    let Candidate {
        mut manifest,
        component,
        script,
        environment,
        ..
    } = job.candidate()?;
    // They name a folder and a file of it.
    manifest.name = None;
    manifest.component = None;
    let contents = Contents {
        manifest,
        script,
        environment,
    };
    built(&contents, &component).map_err(|refusal| refusal.about(&job.alias, path))
}

/// Returns the file of an environment in Python: a folder of servers, or one server. The component is the interpreter of
/// the first of `directories` that has one.
pub fn python_environment(path: &Path, directories: &[PathBuf]) -> Result<BuiltPlugin, Problem> {
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
    let interpreter = job.interpreter(ScriptLanguage::Python)?;
    let component = ComponentFile::read(interpreter, MAX_COMPONENT_BYTES)
        .map_err(|error| LoadRefusal::from(&error).about(&job.alias, path))?;
    built(&contents, &component).map_err(|refusal| refusal.about(&job.alias, path))
}

fn built(contents: &Contents, component: &ComponentFile) -> Result<BuiltPlugin, LoadRefusal> {
    let component = component
        .bytes()
        .map_err(|error| LoadRefusal::from(&error))?;
    let bytes = contents.attach_to(&component).map_err(|error| {
        let what = format!("its files cannot be written as JSON: {error}");
        LoadRefusal::new(ProblemKind::File, what, "")
    })?;
    let hash = blake3::hash(&bytes).to_hex().to_string();
    Ok(BuiltPlugin { bytes, hash })
}
