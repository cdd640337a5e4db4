//! A plugin in one file: a component, and attached to it the manifest and the source files that it runs.
//!
//! [`build`](crate::build) makes such files. The component of a plugin in Python or JavaScript is the interpreter, byte
//! for byte, so all plugins of one interpreter share its compiled code.

use std::fs::File;
use std::io::{self, Seek as _};

use rlf_sandbox::Attachment;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::manifest::PluginManifest;
use crate::script::ScriptFile;

/// The name under which the contents are attached to the component.
const NAME: &str = "rlf:plugin";

/// Maximum size of what is attached, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// What is attached to the component.
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

/// A plugin in one file, open for reading.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) file: File,
    /// Length of the component, with which the file begins.
    pub(crate) component_bytes: u64,
    /// BLAKE3 of the whole file, hexadecimal.
    pub(crate) hash: String,
    pub(crate) contents: Contents,
}

/// The file of a component.
pub(crate) enum Opened {
    /// A component alone.
    Component(File),
    /// A component with contents.
    Bundle(Box<Bundle>),
}

impl Contents {
    /// The bytes of `component` with these contents attached.
    pub(crate) fn attach_to(&self, component: &[u8]) -> serde_json::Result<Vec<u8>> {
        Ok(Attachment::attach(
            component,
            NAME,
            &serde_json::to_vec(self)?,
        ))
    }
}

impl Opened {
    /// Looks for contents in a file.
    pub(crate) fn read(mut file: File) -> io::Result<Self> {
        let Some(attached) = Attachment::read(&file, NAME, MAX_BYTES)? else {
            return Ok(Self::Component(file));
        };
        let contents = serde_json::from_slice(&attached.data)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(&file)?;
        file.rewind()?;
        Ok(Self::Bundle(Box::new(Bundle {
            file,
            component_bytes: attached.component_bytes,
            hash: hasher.finalize().to_hex().to_string(),
            contents,
        })))
    }
}
