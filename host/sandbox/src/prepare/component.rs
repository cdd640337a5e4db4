//! Imports, exports and identity of a component, read without compiling or running it.

use serde::Serialize;
use wasmparser::{BinaryReaderError, Encoding, Parser, Payload};
use wasmtime::Engine;

use super::error::LoadError;
use crate::contract::{CONTRACT, LINKED};
use crate::report::safe_text;

/// Identity, imports and exports of a component.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ComponentInfo {
    /// BLAKE3 of the bytes, hexadecimal.
    pub hash: String,
    /// Length in bytes.
    pub size: u64,
    /// Names of its imports, with versions, in the component's order.
    pub imports: Vec<String>,
    /// Names of its exports, with versions, in the component's order.
    pub exports: Vec<String>,
}

impl ComponentInfo {
    /// Reads the outermost imports and exports. Refuses everything but components: other files, core modules, damaged
    /// files and compiled code.
    pub fn read(bytes: &[u8]) -> Result<Self, LoadError> {
        check_start(bytes)?;
        let mut info = Self {
            hash: blake3::hash(bytes).to_hex().to_string(),
            size: bytes.len() as u64,
            ..Self::default()
        };
        let mut depth = 0_u32;
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload.map_err(|error| damaged(&error))?;
            if depth == 0 {
                info.note(&payload)?;
            }
            match payload {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        Ok(info)
    }

    /// Notes what an outermost part of the component imports or exports.
    pub(super) fn note(&mut self, payload: &Payload<'_>) -> Result<(), LoadError> {
        match payload {
            Payload::Version {
                encoding: Encoding::Module,
                ..
            } => return Err(LoadError::CoreModule),
            Payload::ComponentImportSection(section) => {
                for import in section.clone() {
                    let import = import.map_err(|error| damaged(&error))?;
                    self.imports.push(import.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section.clone() {
                    let export = export.map_err(|error| damaged(&error))?;
                    self.exports.push(export.name.name.to_owned());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The version in which it exports an interface such as `rlf:plugin/tool`, if it does.
    pub fn exported_version(&self, interface: &str) -> Option<&str> {
        version_in(&self.exports, interface)
    }

    /// Refuses imports that the sandbox does not link. The error names all of them, each with the reason.
    /// `gates` are the interfaces of open gates.
    pub(crate) fn check_imports(&self, gates: &[&str]) -> Result<(), LoadError> {
        let mut missing = Vec::new();
        for import in &self.imports {
            let (interface, version) = import.split_once('@').unwrap_or((import, ""));
            if !LINKED.contains(&interface) && !gates.contains(&interface) {
                missing.push(format!("`{import}` is not granted or does not exist"));
                continue;
            }
            let ours = if interface.starts_with("wasi:") {
                "0.2.12"
            } else {
                CONTRACT
            };
            if compatible(version) != compatible(ours) {
                missing.push(format!(
                    "`{interface}` is wanted in version {version}, this host has {ours}"
                ));
            }
        }
        if missing.is_empty() {
            Ok(())
        } else {
            Err(LoadError::Imports { missing })
        }
    }
}

/// Refuses compiled code, and everything else that does not begin as WebAssembly does.
pub(super) fn check_start(bytes: &[u8]) -> Result<(), LoadError> {
    if Engine::detect_precompiled(bytes).is_some() {
        return Err(LoadError::Precompiled);
    }
    if !bytes.starts_with(b"\0asm") {
        let start = safe_text(&bytes[..bytes.len().min(16)]);
        return Err(LoadError::NotWasm { start });
    }
    Ok(())
}

pub(super) fn damaged(error: &BinaryReaderError) -> LoadError {
    LoadError::Damaged {
        reason: error.to_string(),
    }
}

fn version_in<'a>(names: &'a [String], interface: &str) -> Option<&'a str> {
    names.iter().find_map(|name| {
        let (found, version) = name.split_once('@').unwrap_or((name, ""));
        (found == interface).then_some(version)
    })
}

/// The part of a version that must agree: `1` of 1.4.2, `0.2` of 0.2.6, all of 0.0.3 and of
/// pre-releases; as wasmtime's linker matches.
fn compatible(version: &str) -> &str {
    if version.contains('-') {
        return version;
    }
    let mut dots = version.match_indices('.').map(|(at, _)| at);
    match (dots.next(), dots.next()) {
        (Some(major), _) if &version[..major] != "0" => &version[..major],
        (Some(major), Some(minor)) if &version[major + 1..minor] != "0" => &version[..minor],
        _ => version,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_agree_as_the_linker_matches_them() {
        assert_eq!(compatible("0.2.6"), compatible("0.2.0"));
        assert_ne!(compatible("0.1.0"), compatible("0.2.0"));
        assert_eq!(compatible("1.4.2"), compatible("1.0.0"));
        assert_ne!(compatible("0.0.3"), compatible("0.0.4"));
        assert_ne!(compatible("0.2.0-rc"), compatible("0.2.0"));
    }
}
