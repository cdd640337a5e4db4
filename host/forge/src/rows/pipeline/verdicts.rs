//! Verification of all deployed rows, in order. Verdicts are appended to an artefact, and a run continues after the last one.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;

use futures_util::StreamExt as _;
use rlf_interpreters::interpreter::Interpreter;

use super::Progress;
use super::stages::Stages;
use crate::lines;
use crate::rows::artefact::{self, Header, Raw};
use crate::rows::error::RowsError;
use crate::rows::options::RowOptions;
use crate::rows::results::Verified;
use crate::rows::row::Row;
use crate::rows::stage::Stage;
use crate::rows::verification::verify as verify_row;

/// Number of rows that are executed at once, for each processor.
const ROWS_PER_PROCESSOR: usize = 2;
/// Number of verdicts after which the display is told.
const PROGRESS: usize = 25;

/// Verifies rows until `count` of them are accepted. Returns the number of accepted ones.
pub(super) async fn verify(
    stages: &Stages<'_>,
    options: &RowOptions,
    interpreter: &Interpreter,
    again: bool,
    progress: &mut impl FnMut(Progress),
) -> Result<usize, RowsError> {
    let deployed = stages.file(Stage::Deploy);
    let path = stages.file(Stage::Verify);
    let failed = |source| RowsError::write(&path, source);
    let kept = if again {
        None
    } else {
        Kept::read(&path, &deployed)?
    };
    let mut kept = kept.unwrap_or_default();
    let mut out = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(failed)?;
    // A verdict that was written in part, and verdicts of rows that changed, are cut off.
    out.set_len(kept.bytes).map_err(failed)?;
    out.seek(SeekFrom::End(0)).map_err(failed)?;
    if kept.bytes == 0 {
        lines::write(&mut out, &header()).map_err(failed)?;
    }
    progress(Progress::VerificationBegins { kept: kept.rows });
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let deployed = &deployed;
    let rows = artefact::raw_items(deployed)?.skip(kept.rows);
    let mut verdicts = futures_util::stream::iter(rows)
        .map(|line| async move {
            let line = line?;
            let row: Row = line.item(deployed)?;
            let verdict = verify_row(&row, interpreter).await?;
            Ok::<_, RowsError>(Verified {
                id: row.id,
                row: row_hash(&line),
                verdict,
            })
        })
        .buffered(processors * ROWS_PER_PROCESSOR);
    while kept.accepted < options.count {
        let Some(verified) = verdicts.next().await else {
            break;
        };
        let verified = verified?;
        if verified.verdict.findings.is_empty() {
            kept.accepted += 1;
        }
        kept.rows += 1;
        // One write for each line: another process never reads half of one, unless the machine stops.
        let mut text = Vec::new();
        lines::write(&mut text, &verified).map_err(failed)?;
        out.write_all(&text).map_err(failed)?;
        if kept.rows % PROGRESS == 0 {
            progress(kept.progress());
        }
    }
    drop(verdicts);
    progress(kept.progress());
    out.sync_all().map_err(failed)?;
    Ok(kept.accepted)
}

fn header() -> Header {
    Header::new(Stage::Verify.artefact(), String::new())
}

/// The hash of a line of the deployed rows.
fn row_hash(line: &Raw) -> String {
    artefact::key(&[&line.text])
}

/// The verdicts of an earlier run that still hold: those at the front whose rows are unchanged.
#[derive(Default)]
struct Kept {
    rows: usize,
    accepted: usize,
    bytes: u64,
}

impl Kept {
    fn progress(&self) -> Progress {
        Progress::Verified {
            accepted: self.accepted,
            rejected: self.rows - self.accepted,
        }
    }

    /// Reads the verdicts. None if there is no file, or if it is of another version.
    fn read(path: &Path, deployed: &Path) -> Result<Option<Self>, RowsError> {
        if artefact::header(path) != Some(header()) {
            return Ok(None);
        }
        let file = File::open(path).map_err(|source| RowsError::read(path, source))?;
        let mut reader = BufReader::new(file);
        // A line that was cut off may end inside a character.
        let mut text = Vec::new();
        let mut kept = Self::default();
        let mut next = |text: &mut Vec<u8>| {
            text.clear();
            let read = reader.read_until(b'\n', text);
            read.map_err(|source| RowsError::read(path, source))
        };
        kept.bytes += next(&mut text)? as u64;
        let mut rows = artefact::raw_items(deployed)?;
        loop {
            let bytes = next(&mut text)?;
            let Ok(verified) = serde_json::from_slice::<Verified>(&text) else {
                break;
            };
            let Some(row) = rows.next() else {
                break;
            };
            if !text.ends_with(b"\n") || row_hash(&row?) != verified.row {
                break;
            }
            kept.bytes += bytes as u64;
            kept.rows += 1;
            kept.accepted += usize::from(verified.verdict.findings.is_empty());
        }
        Ok(Some(kept))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_verdict_that_was_cut_inside_a_character_is_made_again_and_those_before_it_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (deployed, path) = (folder.path().join("5.jsonl"), folder.path().join("6.jsonl"));
        let rows = ["{\"item\":1}", "{\"item\":2}"];
        fs::write(&deployed, format!("{{}}\n{}\n{}\n", rows[0], rows[1])).unwrap();
        let verdict = |row: &str, reason: &str| {
            let finding = json!({"check": "leak", "reason": reason});
            json!({
                "id": "a", "row": artefact::key(&[row]),
                "verdict": {"findings": [finding], "results": [], "calls": 1},
            })
        };
        let mut whole = Vec::new();
        lines::write(&mut whole, &header()).unwrap();
        lines::write(&mut whole, &verdict(rows[0], "")).unwrap();
        let first = whole.len() as u64;
        lines::write(&mut whole, &verdict(rows[1], "\u{e9}")).unwrap();
        let cut = whole.iter().position(|byte| *byte == 0xc3).unwrap() + 1;
        for (kept, expected) in [(whole.len(), (2, whole.len() as u64)), (cut, (1, first))] {
            fs::write(&path, &whole[..kept]).unwrap();
            let kept = Kept::read(&path, &deployed).unwrap().unwrap();
            assert_eq!((kept.rows, kept.bytes), expected);
        }
    }
}
