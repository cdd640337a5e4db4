//! Rows of a name and a text, at the width of the terminal.

use std::fmt::Write as _;

use console::{Term, style};
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::problem::one_line;

use crate::display::printable;

/// Width of the first column.
const LABEL: usize = 11;
/// Width of the output if it does not go to a terminal.
const USUAL_WIDTH: usize = 100;

/// Prints rows of a name and a text, wrapped at the width of the terminal.
pub(super) struct Screen {
    width: usize,
}

impl Screen {
    pub(super) fn from_terminal() -> Self {
        let terminal = Term::stdout();
        let columns = terminal.size_checked().map(|(_, columns)| columns.into());
        Self {
            width: columns
                .filter(|_| terminal.is_term())
                .unwrap_or(USUAL_WIDTH),
        }
    }

    pub(super) fn text_width(&self) -> usize {
        self.width.saturating_sub(LABEL).max(40)
    }

    pub(super) fn title(
        &self,
        name: &str,
        version: Option<&str>,
        kind: Option<PluginKind>,
        description: &str,
    ) {
        let mut title = style(printable(name)).cyan().bold().to_string();
        if let Some(version) = version {
            let _ = write!(title, " {}", one_line(version));
        }
        if let Some(kind) = kind {
            let _ = write!(title, ", {} (world {})", kind.with_article(), kind.world());
        }
        say!("{title}");
        if !description.is_empty() {
            self.row("", &one_line(description));
        }
    }

    pub(super) fn row(&self, label: &str, text: &str) {
        for (index, part) in wrapped(text, self.text_width()).iter().enumerate() {
            line(if index == 0 { label } else { "" }, part);
        }
    }
}

/// Prints one line, whatever its length.
pub(super) fn line(label: &str, text: &str) {
    say!("{}{text}", style(format!("{label:<LABEL$}")).bold());
}

/// Splits text into lines of at most `width` characters, broken at spaces. A longer word gets its own line.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("never empty");
        let length = console::measure_text_width(last);
        if length > 0 && length + 1 + console::measure_text_width(word) > width {
            lines.push(word.to_owned());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_at_spaces() {
        assert_eq!(wrapped("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrapped("a toolong b", 4), ["a", "toolong", "b"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
