//! The one number in a text.

use num_bigint::BigInt;
use num_rational::BigRational;
use rlf_plugin::serde::Deserialize;

/// The meaning of a percent sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case", crate = "rlf_plugin::serde")]
pub(crate) enum Percent {
    /// 12% is 0.12.
    #[default]
    Hundredths,
    /// 12% is 12, for questions that ask for a percentage.
    Ignored,
}

/// Maximum number of digits in a number, and its largest exponent.
const MAX_DIGITS: usize = 300;

/// The number in a text that contains exactly one; none if there are more or fewer, or if one is not well formed
/// (`1.2.3`, `12,34`).
pub(crate) fn only_number(text: &str, percent: Percent) -> Option<BigRational> {
    let characters: Vec<char> = text.chars().collect();
    let mut found = None;
    let mut next = 0;
    while next < characters.len() {
        let previous = next.checked_sub(1).map(|index| characters[index]);
        let starts = characters[next].is_numeric()
            || (characters[next] == '.'
                && characters.get(next + 1).is_some_and(char::is_ascii_digit));
        if !starts {
            next += 1;
            continue;
        }
        // `m2`, `CO2` and `x1` are names.
        if previous.is_some_and(|c| c.is_alphabetic() || c == '_') {
            next += characters[next..]
                .iter()
                .take_while(|c| c.is_alphanumeric())
                .count()
                .max(1);
            continue;
        }
        if found.is_some() {
            return None;
        }
        let negative = is_negative(&characters[..next]);
        let (value, length) = decimal(&characters[next..], percent)?;
        found = Some(if negative { -value } else { value });
        next += length;
    }
    found
}

/// True if the text before a number is its sign: a minus directly before it (currency signs may be between) that does
/// not follow a letter or digit, or a single one at the start.
fn is_negative(before: &[char]) -> bool {
    let is_minus = |c: char| matches!(c, '-' | '\u{2212}' | '\u{2013}');
    let is_currency = |c: &char| matches!(c, '$' | '\u{20ac}' | '\u{a3}' | '\u{a5}');
    let mut rest = before;
    while let Some((last, earlier)) = rest.split_last()
        && is_currency(last)
    {
        rest = earlier;
    }
    match rest.split_last() {
        Some((last, earlier)) if is_minus(*last) => !earlier
            .last()
            .is_some_and(|c| c.is_alphanumeric() || *c == ')'),
        // "- 5" as a whole answer.
        Some((last, _)) if last.is_whitespace() => {
            let text: String = rest.iter().collect();
            let mut trimmed = text.trim().chars();
            matches!((trimmed.next(), trimmed.next()), (Some(c), None) if is_minus(c))
        }
        _ => false,
    }
}

/// A decimal without sign at the start of `characters`, and how many of them it takes.
fn decimal(characters: &[char], percent: Percent) -> Option<(BigRational, usize)> {
    let digits_at = |from: usize| {
        characters[from.min(characters.len())..]
            .iter()
            .take_while(|c| c.is_ascii_digit())
            .count()
    };
    let is_separator = |c: &char| matches!(c, ',' | '\u{a0}' | '\u{202f}' | '\u{2009}');

    let mut digits: String = characters[..digits_at(0)].iter().collect();
    let mut length = digits.len();
    let mut grouped = None;
    while let Some(separator) = characters.get(length).filter(|c| is_separator(c)) {
        let count = digits_at(length + 1);
        if count == 0 {
            // A comma of the sentence.
            break;
        }
        let first_group_fits = grouped.is_some() || (1..=3).contains(&digits.len());
        if count != 3 || !first_group_fits || grouped.is_some_and(|other| other != *separator) {
            return None;
        }
        grouped = Some(*separator);
        digits.extend(&characters[length + 1..length + 4]);
        length += 4;
    }

    let mut decimals = 0;
    if characters.get(length) == Some(&'.') {
        decimals = digits_at(length + 1);
        if decimals > 0 {
            digits.extend(&characters[length + 1..=length + decimals]);
            length += 1 + decimals;
        }
    }
    // `1.2.3` and `1.5,000` are not numbers.
    if decimals > 0
        && characters
            .get(length)
            .is_some_and(|c| *c == '.' || is_separator(c))
        && digits_at(length + 1) > 0
    {
        return None;
    }

    let mut exponent = 0_i64;
    if let Some('e' | 'E') = characters.get(length) {
        let sign = usize::from(matches!(characters.get(length + 1), Some('+' | '-')));
        let count = digits_at(length + 1 + sign);
        if count > 0 {
            let text: String = characters[length + 1..length + 1 + sign + count]
                .iter()
                .collect();
            exponent = text.parse().ok()?;
            length += 1 + sign + count;
        }
    }
    if digits.len() > MAX_DIGITS || exponent.unsigned_abs() > MAX_DIGITS as u64 {
        return None;
    }

    let spaces = characters[length..]
        .iter()
        .take_while(|c| c.is_whitespace())
        .count();
    if characters.get(length + spaces) == Some(&'%') {
        length += spaces + 1;
        if percent == Percent::Hundredths {
            exponent -= 2;
        }
    }
    let coefficient = BigInt::parse_bytes(digits.as_bytes(), 10)?;
    let exponent = exponent - decimals as i64;
    let power = BigInt::from(10).pow(exponent.unsigned_abs() as u32);
    let value = if exponent < 0 {
        BigRational::new(coefficient, power)
    } else {
        BigRational::from_integer(coefficient * power)
    };
    Some((value, length))
}
