//! JSON files of a run directory.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::RunError;
use super::whole;

pub(super) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), RunError> {
    let mut json =
        serde_json::to_vec_pretty(value).map_err(|e| RunError::io("write", path, e.into()))?;
    json.push(b'\n');
    whole::write_file(path, &json)
}

pub(super) fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, RunError> {
    let text = rlf_files::read_text(path, rlf_files::MAX_TEXT_BYTES)
        .map_err(|e| RunError::io("read", path, e))?;
    serde_json::from_str(&text).map_err(|e| RunError::UnreadableIdentity {
        path: path.to_owned(),
        reason: e.to_string(),
    })
}
