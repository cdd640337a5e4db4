//! Text as the judge sees it: neutral, with a mark before each line, shortened in the middle.

use crate::neutral::neutral;

/// Starts each line of untrusted text. Only our own lines lack it, so no text can pass for a delimiter, a label or the
/// note about characters left out.
pub(crate) const MARK: &str = "| ";

/// A piece of untrusted text under a label of ours, which says whose words it is.
#[derive(Debug)]
pub(crate) struct Part {
    label: Option<String>,
    text: String,
}

impl Part {
    /// A piece without a label, for a text of which there is only one.
    pub(crate) fn plain(text: &str) -> Self {
        let text = neutral(text);
        Self { label: None, text }
    }

    /// A piece under a label, which must not contain untrusted text.
    pub(crate) fn labelled(label: impl Into<String>, text: &str) -> Self {
        let label = Some(label.into());
        Self {
            label,
            ..Self::plain(text)
        }
    }

    fn write(&self, shown: &mut String) {
        self.write_label(shown, ":");
        write_text(shown, &self.text);
    }

    fn write_label(&self, shown: &mut String, end: &str) {
        if let Some(label) = &self.label {
            shown.push_str(label);
            shown.push_str(end);
            shown.push('\n');
        }
    }
}

fn write_text(shown: &mut String, text: &str) {
    for line in text.lines() {
        shown.push_str(MARK);
        shown.push_str(line);
        shown.push('\n');
    }
}

/// Writes the parts, each line ended. If they have more than `max_chars` characters, labels included and marks not, the
/// middle is left out. Where a part goes on after that, its label is repeated.
pub(crate) fn show(parts: &[Part], max_chars: usize) -> String {
    let length = |text: &str| text.chars().count();
    let lengths: Vec<(usize, usize)> = parts
        .iter()
        .map(|part| (part.label.as_deref().map_or(0, length), length(&part.text)))
        .collect();
    let total: usize = lengths.iter().map(|(label, text)| label + text).sum();
    let (mut head, mut tail) = (String::new(), String::new());
    if total <= max_chars {
        for part in parts {
            part.write(&mut head);
        }
        return head;
    }
    // Characters from `from` to before `to` are left out.
    let from = max_chars.div_ceil(2);
    let to = total - max_chars / 2;
    let mut end = 0;
    let mut left_out = 0;
    for (part, (label, text)) in parts.iter().zip(lengths) {
        let begin = end;
        let text_begin = begin + label;
        end = text_begin + text;
        if end <= from || begin >= to {
            part.write(if end <= from { &mut head } else { &mut tail });
            continue;
        }
        let before = from.saturating_sub(text_begin);
        if before > 0 {
            part.write_label(&mut head, ":");
            write_text(&mut head, slice(&part.text, 0, before));
        }
        let after = end.saturating_sub(to.max(text_begin));
        if after > 0 {
            part.write_label(&mut tail, " (continued):");
            write_text(&mut tail, slice(&part.text, text - after, text));
        }
        left_out += text - before - after;
    }
    format!("{head}[... {left_out} characters left out ...]\n{tail}")
}

/// The characters from `begin` to before `end`.
fn slice(text: &str, begin: usize, end: usize) -> &str {
    let place = |index| {
        text.char_indices()
            .nth(index)
            .map_or(text.len(), |(at, _)| at)
    };
    text.get(place(begin)..place(end)).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_text_is_marked_and_labels_are_not() {
        let parts = [Part::plain("a\n\nb"), Part::labelled("the user says", "c")];
        assert_eq!(show(&parts, 100), "| a\n| \n| b\nthe user says:\n| c\n");
    }

    #[test]
    fn a_long_text_loses_its_middle_and_says_how_much() {
        let text = "0123456789".repeat(2);
        assert_eq!(
            show(&[Part::plain(&text)], 7),
            "| 0123\n[... 13 characters left out ...]\n| 789\n"
        );
        assert_eq!(show(&[Part::plain(&text)], 20), format!("| {text}\n"));
        let umlauts = "ä".repeat(10);
        assert_eq!(
            show(&[Part::plain(&umlauts)], 2),
            "| ä\n[... 8 characters left out ...]\n| ä\n"
        );
    }

    #[test]
    fn the_text_after_a_cut_says_again_whose_it_is() {
        let parts = [
            Part::labelled("model", "mmmmmmmmmm"),
            Part::labelled("lost", "l"),
            Part::labelled("tool", "tttttttttt"),
            Part::labelled("end", "e"),
        ];
        assert_eq!(
            show(&parts, 16),
            "model:\n| mmm\n[... 14 characters left out ...]\ntool (continued):\n| tttt\nend:\n| e\n"
        );
    }

    #[test]
    fn what_is_kept_and_what_is_left_out_is_the_whole() {
        let texts = ["", "a", "bcd", "efghijkl"];
        for max in 0..30 {
            let parts: Vec<Part> = texts
                .iter()
                .map(|text| Part::labelled("xy", text))
                .collect();
            let total = 2 * 4 + 12;
            let shown = show(&parts, max);
            let Some((_, rest)) = shown.split_once("[... ") else {
                assert!(max >= total, "{max}: {shown}");
                continue;
            };
            let left_out: usize = rest.split_once(' ').unwrap().0.parse().unwrap();
            let marked = shown.lines().filter_map(|line| line.strip_prefix(MARK));
            let kept: usize = marked.map(|line| line.chars().count()).sum();
            assert!(kept <= max, "{max}: {shown}");
            assert_eq!(kept + left_out, 12, "{max}: {shown}");
        }
    }
}
