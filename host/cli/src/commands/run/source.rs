//! Decodes the bytes of a file to the text of a program, as the language's own interpreter does.

use anyhow::{Context, bail};
use encoding_rs::Encoding;

/// The text of a program, or its interpreter's error message about an unreadable file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    Text(String),
    /// The error message to print; nothing is run.
    Rejected(String),
}

impl Source {
    /// Decodes a program that its interpreter calls `name`. An error means that this decoder cannot read it.
    pub(super) fn read(bytes: Vec<u8>, language: &str, name: &str) -> anyhow::Result<Self> {
        if language == "python" {
            return python(bytes, name);
        }
        String::from_utf8(bytes)
            .map(Self::Text)
            .ok()
            .with_context(|| format!("{name} is not UTF-8 text; save it as UTF-8"))
    }
}

/// Applies Python's rules (PEP 263): UTF-8, unless a comment in one of the first two lines names another encoding.
fn python(bytes: Vec<u8>, name: &str) -> anyhow::Result<Source> {
    let has_mark = bytes.starts_with(b"\xef\xbb\xbf");
    let declared = declared(&bytes);
    let codec = declared.as_deref().map(normal);
    let problem = |what: &str| Source::Rejected(format!("SyntaxError: encoding problem: {what}\n"));
    let text = match codec.as_deref() {
        None | Some("utf-8" | "utf8") => match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => return Ok(not_utf_8(&error, codec.is_some(), name)),
        },
        Some(_) if has_mark => {
            let declared = declared.unwrap_or_default();
            return Ok(problem(&format!("{declared} with BOM")));
        }
        Some("ascii" | "us-ascii") if !bytes.is_ascii() => return Ok(problem("ascii")),
        Some("iso-8859-1") => bytes.iter().copied().map(char::from).collect(),
        Some(codec) => {
            // All supported encodings read bytes below 128 as ASCII; `replacement` is for those that do not.
            let encoding = Encoding::for_label(codec.as_bytes())
                .filter(|encoding| encoding.is_ascii_compatible());
            let Some(encoding) = encoding else {
                let declared = declared.unwrap_or_default();
                bail!(
                    "{name} says that it is in `{declared}`, which is not read here; save it as UTF-8"
                );
            };
            match encoding.decode_without_bom_handling_and_without_replacement(&bytes) {
                Some(text) => text.into_owned(),
                None => return Ok(problem(codec)),
            }
        }
    };
    Ok(Source::Text(text))
}

/// The encoding that a comment in the first two lines declares.
fn declared(bytes: &[u8]) -> Option<String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    for line in bytes.split(|byte| *byte == b'\n').take(2) {
        let line = line.trim_ascii_start();
        let comment = match line.first() {
            None => continue,
            Some(b'#') => String::from_utf8_lossy(line),
            // Only a line without a statement may come before the comment.
            Some(_) => return None,
        };
        for (at, word) in comment.match_indices("coding") {
            let rest = &comment[at + word.len()..];
            let Some(rest) = rest.strip_prefix([':', '=']) else {
                continue;
            };
            let rest = rest.trim_start_matches([' ', '\t']);
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            if end > 0 {
                return Some(rest[..end].to_owned());
            }
        }
    }
    None
}

/// Normalises the name of an encoding as CPython's tokenizer does.
fn normal(name: &str) -> String {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let is = |family: &str| {
        name.strip_prefix(family)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    if is("utf-8") {
        "utf-8".to_owned()
    } else if is("latin-1") || is("iso-8859-1") || is("iso-latin-1") || name == "latin1" {
        "iso-8859-1".to_owned()
    } else {
        name
    }
}

fn not_utf_8(error: &std::string::FromUtf8Error, is_declared: bool, name: &str) -> Source {
    let at = error.utf8_error().valid_up_to();
    let bytes = error.as_bytes();
    let (line, byte) = (1 + newlines(&bytes[..at]), bytes[at]);
    Source::Rejected(if is_declared {
        format!(
            "  File \"{name}\", line {line}\n\
             SyntaxError: (unicode error) 'utf-8' codec can't decode byte {byte:#04x}\n"
        )
    } else {
        format!(
            "SyntaxError: Non-UTF-8 code starting with '\\x{byte:02x}' in file {name} on line {line}, but no \
             encoding declared; see https://peps.python.org/pep-0263/ for details\n"
        )
    })
}

fn newlines(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        match Source::read(bytes.to_vec(), "python", "x.py").unwrap() {
            Source::Text(text) => text,
            Source::Rejected(said) => panic!("rejected: {said}"),
        }
    }

    fn rejected(bytes: &[u8]) -> String {
        match Source::read(bytes.to_vec(), "python", "x.py").unwrap() {
            Source::Text(text) => panic!("read: {text}"),
            Source::Rejected(said) => said,
        }
    }

    #[test]
    fn a_comment_in_the_first_two_lines_names_the_encoding() {
        assert_eq!(text("print('é')".as_bytes()), "print('é')");
        for comment in [
            "# -*- coding: latin-1 -*-",
            "#!/usr/bin/python3\n# vim: set fileencoding=iso-8859-1 :",
            "\t# coding:Latin1\r",
            "\n#coding=iso_8859_1",
        ] {
            let mut bytes = format!("{comment}\nprint('").into_bytes();
            bytes.extend(b"\xe9')");
            assert_eq!(text(&bytes), format!("{comment}\nprint('é')"));
        }
        // In latin-1 every byte is the character of the same number; cp1252 differs for some.
        assert_eq!(
            text(b"# coding: latin-1\n\x80"),
            "# coding: latin-1\n\u{80}"
        );
        assert_eq!(text(b"# coding: cp1252\n\x80"), "# coding: cp1252\n€");
        assert_eq!(text(b"# coding: koi8-r\n\xc1"), "# coding: koi8-r\nа");
    }

    /// Expected texts are CPython 3.13's. For a declared UTF-8, the part that gives no column is compared.
    #[test]
    fn what_is_not_in_the_encoding_that_it_should_be_is_a_syntax_error() {
        let undeclared = |line| {
            format!(
                "SyntaxError: Non-UTF-8 code starting with '\\xe9' in file x.py on line {line}, but no encoding \
                 declared; see https://peps.python.org/pep-0263/ for details\n"
            )
        };
        assert_eq!(rejected(b"x = 1\nprint('\xe9')\n"), undeclared(2));
        // A comment after a statement, or in the third line, does not count.
        assert_eq!(
            rejected(b"x = 1\n# coding: latin-1\n'\xe9'\n"),
            undeclared(3)
        );
        assert_eq!(rejected(b"\n\n# coding: latin-1\n'\xe9'\n"), undeclared(4));
        assert_eq!(
            rejected(b"# coding: utf-8\n'\xff'\n"),
            "  File \"x.py\", line 2\nSyntaxError: (unicode error) 'utf-8' codec can't decode byte 0xff\n"
        );
        assert_eq!(
            rejected("# coding: ascii\n'é'\n".as_bytes()),
            "SyntaxError: encoding problem: ascii\n"
        );
        assert_eq!(
            rejected("\u{feff}# coding: latin-1\n".as_bytes()),
            "SyntaxError: encoding problem: latin-1 with BOM\n"
        );
        assert_eq!(
            rejected(b"# coding: shift_jis\n\x81\n"),
            "SyntaxError: encoding problem: shift-jis\n"
        );
    }

    #[test]
    fn what_cannot_be_read_says_how_to_mend_it() {
        let error = |bytes: &[u8], language| {
            let error = Source::read(bytes.to_vec(), language, "x").unwrap_err();
            error.to_string()
        };
        assert_eq!(
            error(b"# coding: cp437\n", "python"),
            "x says that it is in `cp437`, which is not read here; save it as UTF-8"
        );
        assert_eq!(
            error(b"\xff", "javascript"),
            "x is not UTF-8 text; save it as UTF-8"
        );
    }
}
