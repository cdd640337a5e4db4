//! The words and numbers of a text, for matching whole words: `2` is not in `12`, `1.2`, `2,000` or `-2`.

/// Lower-case words in order. A number is one word with its sign and decimals, without thousands commas and trailing
/// zeros of the decimals. Scripts without spaces have one word per character, so that a name in a sentence is found.
pub(crate) fn words(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.to_lowercase().chars().collect();
    let digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    let mut words = Words::default();
    for (at, c) in chars.iter().copied().enumerate() {
        let before = at.checked_sub(1).map(|before| chars[before]);
        match c {
            '.' if digit(at + 1) && words.ends_in_digit() => words.current.push('.'),
            '.' if digit(at + 1) && begins_number(before) => words.current.push_str("0."),
            '-' | '\u{2212}' if digit(at + 1) && begins_number(before) => words.current.push('-'),
            ',' if words.ends_in_group() && (at + 1..at + 4).all(digit) && !digit(at + 4) => {
                words.grouped = true;
            }
            c if is_alone(c) => {
                words.flush();
                words.current.push(c);
                words.flush();
            }
            c if is_word(c) => words.current.push(c),
            _ => words.flush(),
        }
    }
    words.flush();
    words.done
}

#[derive(Default)]
struct Words {
    done: Vec<String>,
    current: String,
    /// The current number has had a thousands comma.
    grouped: bool,
}

impl Words {
    fn flush(&mut self) {
        self.grouped = false;
        if !self.current.is_empty() {
            let word = std::mem::take(&mut self.current);
            self.done.push(plain_decimals(word));
        }
    }

    fn ends_in_digit(&self) -> bool {
        self.current.ends_with(|c: char| c.is_ascii_digit())
    }

    /// True if the current word consists of the leading digits of a number with thousands commas.
    fn ends_in_group(&self) -> bool {
        let digits = self.current.strip_prefix('-').unwrap_or(&self.current);
        let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        all && (self.grouped || digits.len() <= 3)
    }
}

/// True if a sign or a decimal point after this character begins a number: not in `2007-11`, nor in `a-1`.
fn begins_number(before: Option<char>) -> bool {
    before.is_none_or(|c| c.is_whitespace() || "([{<:=,;$\"'`".contains(c))
}

fn is_word(c: char) -> bool {
    // Combining marks belong to the letter before them.
    c.is_alphanumeric() || c == '_' || ('\u{300}'..='\u{36f}').contains(&c)
}

/// Characters of Chinese and Japanese.
fn is_alone(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// `5.0` and `5` are one number, as are `12.50` and `12.5`.
fn plain_decimals(word: String) -> String {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match word.split_once('.') {
        Some((whole, decimals))
            if digits(whole.strip_prefix('-').unwrap_or(whole)) && digits(decimals) =>
        {
            let trimmed = word.trim_end_matches('0');
            trimmed.trim_end_matches('.').to_owned()
        }
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_one_word_however_it_is_written() {
        for (text, expected) in [
            ("It is 1,024.50 (or -3).", "it is 1024.5 or -3"),
            ("12,345,678 of 2007,123", "12345678 of 2007 123"),
            ("1,2,3 and 1,2345", "1 2 3 and 1 2345"),
            ("2007-11-7", "2007 11 7"),
            ("a-1 x - 5 \u{2212}5 $.5", "a 1 x 5 -5 0.5"),
            ("5.0 5.00 10 1.2.30", "5 5 10 1.2.30"),
            ("35. 37.9%", "35 37.9"),
            ("", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn words_of_any_script_are_whole() {
        assert_eq!(
            words("Abdel Fattah el-Sisi."),
            ["abdel", "fattah", "el", "sisi"]
        );
        assert_eq!(words("JOAQU\u{cd}N co_op"), ["joaqu\u{ed}n", "co_op"]);
        assert_eq!(
            words("\u{6211}\u{5728}Rome"),
            ["\u{6211}", "\u{5728}", "rome"]
        );
        assert_eq!(words("cafe\u{301}"), ["cafe\u{301}"]);
    }
}
