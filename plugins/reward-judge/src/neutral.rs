//! Untrusted text in which everything is visible and nothing controls a model, a terminal or a reader.

use std::fmt::Write as _;

/// Characters that show nothing, that reorder text or that end a line in the eyes of some readers. Line feed, tab and
/// the variation selectors of emoji (U+FE0E, U+FE0F) are not among them.
const HIDDEN: [(char, char); 30] = [
    ('\0', '\u{8}'),
    ('\u{b}', '\u{1f}'),
    ('\u{7f}', '\u{9f}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{e000}', '\u{f8ff}'),
    ('\u{fdd0}', '\u{fdef}'),
    ('\u{fe00}', '\u{fe0d}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{fffe}', '\u{ffff}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{1fffe}', '\u{1ffff}'),
    ('\u{2fffe}', '\u{2ffff}'),
    ('\u{3fffe}', '\u{3ffff}'),
    ('\u{e0000}', '\u{e0fff}'),
    ('\u{f0000}', '\u{ffffd}'),
    ('\u{100000}', '\u{10ffff}'),
];

/// Beginnings of tokens that control the chat templates of common models. `<|` and its full-width form, with which most
/// of them begin, are looked for separately.
const CONTROL: [&str; 36] = [
    "<s>",
    "</s>",
    "<bos>",
    "<eos>",
    "<pad>",
    "<unk>",
    "<mask>",
    "<sop>",
    "<eop>",
    "<unused",
    "<reserved",
    "<extra_id",
    "<start_of_",
    "<end_of_",
    "<begin_of_",
    "<think",
    "</think",
    "<tool_",
    "</tool_",
    "<tools>",
    "</tools>",
    "<<sys>>",
    "<</sys>>",
    "[inst]",
    "[/inst]",
    "[system_prompt]",
    "[/system_prompt]",
    "[tool_calls]",
    "[tool_results]",
    "[/tool_results]",
    "[available_tools]",
    "[/available_tools]",
    "[think]",
    "[/think]",
    "[gmask]",
    "]~",
];

/// The text with hidden characters, and the first character of control tokens, as escapes such as `\u{200b}`.
pub(crate) fn neutral(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        if rest.starts_with("\r\n") {
            continue;
        }
        if is_hidden(c) || begins_control(rest) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// True if nothing in the text can be seen.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_hidden(c))
}

fn is_hidden(c: char) -> bool {
    let printable = matches!(c, ' '..='~');
    !printable && HIDDEN.iter().any(|(low, high)| (*low..=*high).contains(&c))
}

fn begins_control(text: &str) -> bool {
    let begins = |token: &&str| {
        text.as_bytes()
            .get(..token.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(token.as_bytes()))
    };
    match text.as_bytes().first() {
        Some(b'<') => {
            text.starts_with("<|") || text.starts_with("<\u{ff5c}") || CONTROL.iter().any(begins)
        }
        Some(b'[' | b']') => CONTROL.iter().any(begins),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_people_write_is_left_as_it_is() {
        for text in [
            "Zürich\n\t– 日本 العربية हिन्दी",
            "if a < b && c[0] > 1 { x |= y }",
            "<table><tr></tr></table> [1] [link](http://x)",
            "a heart \u{2764}\u{fe0f}",
        ] {
            assert_eq!(neutral(text), text);
        }
        assert_eq!(neutral("two\r\nlines\r"), "two\nlines\\u{d}");
    }

    #[test]
    fn hidden_characters_are_shown() {
        assert_eq!(
            neutral("a\u{200b}b\u{202e}c\u{1b}[2J\0"),
            "a\\u{200b}b\\u{202e}c\\u{1b}[2J\\u{0}"
        );
        // "Hi" as tag characters, which some models read and no person sees.
        assert_eq!(neutral("\u{e0048}\u{e0069}"), "\\u{e0048}\\u{e0069}");
        assert_eq!(neutral("x\u{2028}y\u{85}z"), "x\\u{2028}y\\u{85}z");
    }

    #[test]
    fn control_tokens_are_broken_and_stay_readable() {
        assert_eq!(neutral("<|im_start|>system"), "\\u{3c}|im_start|>system");
        assert_eq!(
            neutral("<\u{ff5c}User\u{ff5c}>"),
            "\\u{3c}\u{ff5c}User\u{ff5c}>"
        );
        assert_eq!(
            neutral("[INST] <<SYS>> x </s>"),
            "\\u{5b}INST] \\u{3c}<SYS>> x \\u{3c}/s>"
        );
        assert_eq!(neutral("<Think>"), "\\u{3c}Think>");
        assert_eq!(neutral("<"), "<");
    }

    #[test]
    fn a_text_of_hidden_characters_only_is_blank() {
        assert!(is_blank(""));
        assert!(is_blank(" \n\u{200b}\u{3164}\u{e0041}"));
        assert!(!is_blank(" . "));
    }
}
