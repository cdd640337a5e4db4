//! Guest text that is safe to show: control characters made visible, long lines cut.

use std::fmt::Write as _;

/// Text that is safe to show: invalid UTF-8 becomes U+FFFD; control characters other than
/// newline and tab become their visible pictures, so that nothing can move a cursor, recolour or
/// rename a terminal; characters that reorder or hide text become U+FFFD.
///
/// ```
/// assert_eq!(rlf_sandbox::safe_text(b"ok\x1b[2J\r\n\xff"), "ok\u{241b}[2J\n\u{fffd}");
/// ```
pub fn safe_text(bytes: &[u8]) -> String {
    let lossy = String::from_utf8_lossy(bytes);
    if !lossy.chars().any(is_unsafe) {
        return lossy.into_owned();
    }
    let mut text = String::with_capacity(lossy.len());
    let mut characters = lossy.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' if characters.peek() == Some(&'\n') => {}
            '\u{7f}' => text.push('\u{2421}'),
            c if is_unsafe(c) && c < ' ' => {
                text.push(
                    char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
                );
            }
            c if is_unsafe(c) => text.push(char::REPLACEMENT_CHARACTER),
            c => text.push(c),
        }
    }
    text
}

fn is_unsafe(character: char) -> bool {
    (character.is_control() && !matches!(character, '\n' | '\t'))
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{061c}')
}

/// Cuts a line at `limit` bytes, at a character, and says so.
pub(crate) fn shortened(mut line: String, limit: usize) -> String {
    if line.len() > limit {
        let total = line.len();
        line.truncate(line.floor_char_boundary(limit));
        let omitted = total - line.len();
        let _ = write!(line, " [... {omitted} bytes left out]");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_tricks_become_visible() {
        assert_eq!(
            safe_text(b"a\x1b]0;title\x07b\x00\x7f"),
            "a\u{241b}]0;title\u{2407}b\u{2400}\u{2421}"
        );
        assert_eq!(
            safe_text("x\u{9b}31m\u{202e}y".as_bytes()),
            "x\u{fffd}31m\u{fffd}y"
        );
        assert_eq!(
            safe_text(b"line\r\nover\rwritten\ttab"),
            "line\nover\u{240d}written\ttab"
        );
    }

    #[test]
    fn a_long_line_is_cut_at_a_character() {
        assert_eq!(shortened("ééé".into(), 3), "é [... 4 bytes left out]");
        assert_eq!(shortened("abc".into(), 3), "abc");
    }
}
