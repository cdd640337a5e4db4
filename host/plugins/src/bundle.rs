//! A bundle: a plugin in one file. It is a component, and attached to it are the manifest and the source files that the
//! component runs.
//!
//! [`bundling`](crate::bundling) makes such files. The component of a plugin in Python or JavaScript is the interpreter,
//! byte for byte, so all plugins of one interpreter share its compiled code.

use std::fs::File;
use std::io;

use rlf_sandbox::Attachment;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::manifest::PluginManifest;
use crate::script::ScriptFile;

/// The name under which the contents are attached to the component.
const NAME: &str = "rlf:plugin";

/// Maximum size of the contents, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// The attached contents.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Contents {
    pub(crate) manifest: PluginManifest,
    /// The source file, if the component is an interpreter that runs one.
    pub(crate) script: Option<ScriptFile>,
    /// The files of an environment in Python, if the component is an interpreter that loads one: see
    /// [`PythonEnvironment::read`](crate::python_environment::PythonEnvironment::read).
    pub(crate) environment: Option<Value>,
}

/// A bundle, open for reading from its start.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) file: File,
    pub(crate) attached: Attachment,
    pub(crate) contents: Contents,
}

impl Contents {
    /// Attaches the contents to the bytes of a component.
    pub(crate) fn attach_to(&self, component: &mut Vec<u8>) -> serde_json::Result<()> {
        Attachment::append(component, NAME, &serde_json::to_vec(self)?);
        Ok(())
    }
}

impl Bundle {
    /// Opens the file of a component, and reads the contents attached to it. `None` if there are none.
    pub(crate) fn read(file: &File) -> io::Result<Option<Self>> {
        let Some(attached) = Attachment::read(file, NAME, MAX_BYTES)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            file: file.try_clone()?,
            contents: serde_json::from_slice(attached.data())?,
            attached,
        }))
    }
}
