//! A plugin that was found, with the component that runs it. None of its code has run.

use std::path::PathBuf;

use rlf_sandbox::{ComponentFile, ComponentInfo};
use serde_json::Value;

use crate::manifest::{PluginKind, PluginManifest};
use crate::script::ScriptFile;

/// A plugin that can be admitted.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// Its folder, or its bare file.
    pub(crate) path: PathBuf,
    pub(crate) manifest: PluginManifest,
    /// The component: its own, or the interpreter's.
    pub(crate) component: ComponentFile,
    /// The file of its component, or its source file.
    pub(crate) code_path: PathBuf,
    pub(crate) script: Option<ScriptFile>,
    /// For a bundle: the files of its environment in Python.
    pub(crate) environment: Option<Value>,
    /// For a [bundle](crate::bundle): BLAKE3 of the whole file, in hexadecimal.
    pub(crate) bundle_hash: Option<String>,
}

impl Candidate {
    /// The hash of the plugin's code, with the imports and exports of the component that runs it.
    pub(crate) fn info(&self) -> ComponentInfo {
        let info = self.component.info().clone();
        let own = self.script.as_ref().map(ScriptFile::hash);
        match self.bundle_hash.clone().or(own) {
            Some(hash) => ComponentInfo { hash, ..info },
            None => info,
        }
    }

    /// The kind that its manifest says, or else that its code shows, if it shows one.
    pub(crate) fn kind(&self) -> Option<PluginKind> {
        if let Some(file) = &self.script {
            return file.kind(&self.manifest);
        }
        let info = self.component.info();
        let mut kinds = PluginKind::ALL.into_iter();
        let exported = kinds.find(|kind| info.exported_version(kind.interface()).is_some());
        self.manifest.kind.or(exported)
    }
}
