//! Files of JSON lines: read with the numbers of their lines, written, and appended to.
//!
//! A program that is stopped while it appends leaves half a line at the end of the file, perhaps half a character. So
//! lines are read as bytes, and [`whole`] removes that half.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use serde::Serialize;

/// The lines that are not empty, each with its number from 1. Empty lines are counted.
pub(crate) fn numbered(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = (1..).zip(bytes.split(|byte| *byte == b'\n'));
    lines.filter(|(_, line)| !line.trim_ascii().is_empty())
}

/// The text of a file that people write, without the byte order mark that some editors begin it with.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    let text = fs::read_to_string(path)?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// The whole lines of a file that [`append`] writes. A last line without an end is removed from the file. A file that is
/// not there has no lines.
pub(crate) fn whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let length = end.map_or(0, |at| at + 1);
    if length < bytes.len() {
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(length as u64)?;
        bytes.truncate(length);
    }
    Ok(bytes)
}

/// Appends one line for each value, in a single write. The file is created if it does not exist.
pub(crate) fn append<T: Serialize>(
    path: &Path,
    values: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    let mut text = Vec::new();
    for value in values {
        write(&mut text, &value)?;
    }
    append_text(path, &text)
}

/// Appends whole lines in a single write. The file is created if it does not exist.
pub(crate) fn append_text(path: &Path, lines: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(lines)
}

/// Writes one line.
pub(crate) fn write(out: &mut (impl Write + ?Sized), value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_lines_count_and_are_left_out() {
        let found: Vec<(usize, &[u8])> = numbered(b"\n{}\n \r\n[]").collect();
        assert_eq!(found, [(2, &b"{}"[..]), (4, b"[]")]);
    }

    #[test]
    fn a_line_that_was_cut_inside_a_character_is_removed_and_the_file_continues() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        assert_eq!(whole(&path).unwrap(), b"");
        append(&path, ["é", "b"]).unwrap();
        let all = fs::read(&path).unwrap();
        assert_eq!(all, "\"é\"\n\"b\"\n".as_bytes());
        for (kept, expected) in [(2, ""), (6, "\"é\"\n"), (all.len(), "\"é\"\n\"b\"\n")] {
            fs::write(&path, &all[..kept]).unwrap();
            assert_eq!(whole(&path).unwrap(), expected.as_bytes());
            append(&path, [1]).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(text, format!("{expected}1\n"));
        }
    }
}
