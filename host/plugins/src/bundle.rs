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

use crate::manifest::{MAX_MANIFEST_BYTES, PluginManifest};
use crate::python_environment;
use crate::script::Script;

/// The name under which the contents are attached to the component.
const NAME: &str = "rlf:plugin";

/// Maximum size of the contents, in bytes. Parsed, they take many times as much.
const MAX_BYTES: usize = 8 << 20;

/// The parts of a plugin besides its component. In a bundle, they are attached to the component.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Contents {
    pub(crate) manifest: PluginManifest,
    /// The source files, if the component is an interpreter that runs them.
    pub(crate) script: Option<Script>,
    /// The files of the environment in Python that a bundle contains: see
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
    pub(crate) fn attach_to(&self, component: &mut Vec<u8>) -> io::Result<()> {
        let data = serde_json::to_vec(self)?;
        if data.len() > MAX_BYTES {
            let what = format!(
                "its files have {} bytes, and a bundle has at most {MAX_BYTES}",
                data.len()
            );
            return Err(invalid(what));
        }
        Attachment::append(component, NAME, &data);
        Ok(())
    }

    /// Refuses what would be refused in files.
    fn check(&self) -> io::Result<()> {
        let manifest = serde_json::to_vec(&self.manifest)?.len();
        if manifest as u64 > MAX_MANIFEST_BYTES {
            return Err(invalid(format!("its manifest has {manifest} bytes")));
        }
        if let Some(script) = &self.script {
            script.check().map_err(invalid)?;
        }
        if let Some(environment) = &self.environment {
            python_environment::check(environment).map_err(invalid)?;
        }
        Ok(())
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Bundle {
    /// Opens the file of a component, and reads the contents attached to it. `None` if there are none.
    pub(crate) fn read(file: &File) -> io::Result<Option<Self>> {
        let Some(attached) = Attachment::read(file, NAME, MAX_BYTES)? else {
            return Ok(None);
        };
        let contents: Contents = serde_json::from_slice(attached.data())?;
        contents.check()?;
        Ok(Some(Self {
            file: file.try_clone()?,
            attached,
            contents,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use serde_json::json;

    use super::*;

    fn read(contents: &Value) -> io::Result<Option<Bundle>> {
        let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
        Attachment::append(&mut bytes, NAME, &serde_json::to_vec(contents).unwrap());
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        file.rewind().unwrap();
        Bundle::read(&file)
    }

    #[test]
    fn contents_are_read_with_the_limits_of_files() {
        let script = |files: usize, bytes: usize| {
            let beside = (0..files).map(|file| (format!("{file}.py"), json!("x".repeat(bytes))));
            let beside: serde_json::Map<String, Value> = beside.collect();
            json!({"script": {"language": "python", "name": "a.py", "source": "", "beside": beside}})
        };
        assert!(read(&script(2, 10)).unwrap().is_some());
        let servers = |count: usize, name: &str| {
            let servers =
                (0..count).map(|server| (format!("{name}{server}"), json!({"source": ""})));
            let servers: serde_json::Map<String, Value> = servers.collect();
            json!({"environment": {"servers": servers, "scenarios": []}})
        };
        assert!(read(&servers(2, "A")).unwrap().is_some());
        for (contents, said) in [
            (script(64, 1), "64 files"),
            (script(1, (1 << 20) + 1), "1048577 bytes"),
            (servers(257, "A"), "257 servers"),
            (servers(1, "\u{1b}[2J"), "a server with the name"),
            (json!({"environment": [0, 0]}), "no servers"),
            (
                json!({"manifest": {"description": "x".repeat(70_000)}}),
                "its manifest has",
            ),
            (json!({"unknown": 1}), "unknown field"),
            (
                json!({"environment": {"servers": {"A": "x".repeat(9 << 20)}}}),
                "at most",
            ),
        ] {
            let error = read(&contents).unwrap_err().to_string();
            assert!(error.contains(said), "{said}: {error:.200}");
        }
    }
}
