//! A session outside an instance: the environment's bytes, the tools on offer, and the hash of the component that wrote
//! them. Only that component is known to read them.

use rlf_dialogue::tool::ToolDefinition;
use rlf_plugins::offered_tools::OfferedToolsError;
use serde::{Deserialize, Serialize};

/// First line of a snapshot's file.
const MAGIC: &str = "rlf-host session 2";

/// A session at rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionSnapshot {
    /// BLAKE3 of the component, hexadecimal. For an environment in Python: of the interpreter and its files.
    pub component: String,
    /// The tools, as models see them.
    pub tools: Vec<ToolDefinition>,
    /// Number of actions so far in the session.
    pub acts: u64,
    /// The environment's own data.
    pub data: Vec<u8>,
}

/// The reason why a snapshot cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes are not a snapshot.
    #[error("this is no snapshot of a session: it does not begin with {MAGIC:?}")]
    Foreign,
    /// The bytes have changed since they were written.
    #[error("the snapshot is damaged: its bytes are not those that were written")]
    Damaged,
    /// Another component wrote the snapshot.
    #[error(
        "the snapshot was made by component {made_by}, and this is {this}; play the episode again, or use the component it is of"
    )]
    OtherComponent {
        /// Hash of the component that wrote it.
        made_by: String,
        /// Hash of the present component.
        this: String,
    },
    /// The environment refused the snapshot.
    #[error("the environment does not take the snapshot: {0}")]
    Refused(String),
    /// The tools of the snapshot are no longer accepted.
    #[error("the tools of the snapshot cannot be used: {0}")]
    Tools(OfferedToolsError),
}

impl SessionSnapshot {
    /// Writes a snapshot as a file: five lines of text, then the environment's bytes. The second line is the BLAKE3 of
    /// everything after it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let tools = serde_json::to_string(&self.tools).unwrap_or_else(|_| "[]".into());
        let mut body = format!("{}\n{tools}\n{}\n", self.component, self.acts).into_bytes();
        body.extend_from_slice(&self.data);
        let mut bytes = format!("{MAGIC}\n{}\n", blake3::hash(&body)).into_bytes();
        bytes.extend(body);
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let rest = bytes.strip_prefix(MAGIC.as_bytes());
        let rest = rest.and_then(|rest| rest.strip_prefix(b"\n"));
        let mut parts = rest
            .ok_or(SnapshotError::Foreign)?
            .splitn(2, |byte| *byte == b'\n');
        let mut part = || parts.next().ok_or(SnapshotError::Damaged);
        let (hash, body) = (part()?, part()?);
        if hash != blake3::hash(body).to_hex().as_bytes() {
            return Err(SnapshotError::Damaged);
        }
        let mut parts = body.splitn(4, |byte| *byte == b'\n');
        let mut part = || parts.next().ok_or(SnapshotError::Foreign);
        let (component, tools, acts, data) = (part()?, part()?, part()?, part()?);
        let acts = std::str::from_utf8(acts)
            .ok()
            .and_then(|text| text.parse().ok());
        let component = std::str::from_utf8(component).map_err(|_| SnapshotError::Foreign)?;
        Ok(Self {
            component: component.to_owned(),
            tools: serde_json::from_slice(tools).map_err(|_| SnapshotError::Foreign)?,
            acts: acts.ok_or(SnapshotError::Foreign)?,
            data: data.to_vec(),
        })
    }

    /// Refuses a snapshot of another component.
    pub(crate) fn check(&self, this: &str) -> Result<(), SnapshotError> {
        if self.component == this {
            return Ok(());
        }
        Err(SnapshotError::OtherComponent {
            made_by: self.component.clone(),
            this: this.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gives_back_what_was_written() {
        let snapshot = SessionSnapshot {
            component: "ab12".into(),
            tools: vec![
                serde_json::from_str(r#"{"name": "a", "description": "b\nc", "input-schema": {}}"#)
                    .unwrap(),
            ],
            acts: 7,
            data: b"\n\x00two\nlines".to_vec(),
        };
        let written = snapshot.to_bytes();
        assert_eq!(SessionSnapshot::from_bytes(&written), Ok(snapshot));
        for at in 0..written.len() {
            let mut damaged = written.clone();
            damaged[at] ^= 1;
            let read = SessionSnapshot::from_bytes(&damaged);
            let says = if at <= MAGIC.len() {
                SnapshotError::Foreign
            } else {
                SnapshotError::Damaged
            };
            assert_eq!(read, Err(says), "{at}");
        }
    }

    #[test]
    fn other_files_and_other_components_are_refused() {
        let with = |body: &[u8]| {
            let head = format!("{MAGIC}\n{}\n", blake3::hash(body));
            [head.as_bytes(), body].concat()
        };
        for foreign in [
            b"".to_vec(),
            b"x".to_vec(),
            b"x\ny\nz".to_vec(),
            with(b"\xff\n[]\n0\n"),
            with(b"ab\n{\n0\n"),
            with(b"ab\n[]\nx\n"),
        ] {
            assert_eq!(
                SessionSnapshot::from_bytes(&foreign),
                Err(SnapshotError::Foreign)
            );
        }
        let snapshot = SessionSnapshot {
            component: "a".into(),
            tools: Vec::new(),
            acts: 0,
            data: Vec::new(),
        };
        assert_eq!(snapshot.check("a"), Ok(()));
        assert!(
            snapshot
                .check("b")
                .unwrap_err()
                .to_string()
                .contains("component a")
        );
    }
}
