//! Removes secrets from answers.
//!
//! A server may repeat what it was sent: in an error page, in a debugging header, or in the URL of a redirect. Each
//! secret is searched for in several forms: as plain text, in upper or lower case; in base64 of both alphabets, also
//! inside longer text; percent-encoded; and with JSON's escapes. Every match becomes `[secret NAME]`.
//!
//! This protects from honest mistakes. A server that hides the secret it was given (reversed, cut in two, encrypted)
//! can pass it to the plugin. A secret is bound to one host because that host is trusted with it.

use std::ops::Range;

use aho_corasick::AhoCorasick;

use crate::error::HttpError;
use crate::secret::Secrets;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Finds the secrets of one plugin's HTTP rules.
pub(crate) struct Redactor {
    /// `None` if there is no secret.
    automaton: Option<AhoCorasick>,
    patterns: Vec<Pattern>,
    /// Each secret, as it is.
    secrets: Vec<Vec<u8>>,
    /// `[secret NAME]`, for each secret.
    marks: Vec<String>,
}

/// The meaning of one pattern of the automaton.
struct Pattern {
    secret: usize,
    /// Number of base64 characters before and after the match that contain bits of the secret.
    around: [usize; 2],
}

/// A range in an answer, and the index of the secret found there.
type Find = (Range<usize>, usize);

impl Redactor {
    pub(crate) fn new(secrets: &Secrets) -> Result<Self, HttpError> {
        let mut patterns = Vec::new();
        let mut texts = Vec::new();
        let mut plain = Vec::new();
        let mut marks = Vec::new();
        for (secret, found) in secrets.iter().enumerate() {
            marks.push(format!("[secret {}]", found.name()));
            plain.push(found.text().as_bytes().to_vec());
            texts.push(found.text().as_bytes().to_vec());
            patterns.push(Pattern {
                secret,
                around: [0, 0],
            });
            for alphabet in [STANDARD, URL_SAFE] {
                for before in 0..3 {
                    let (text, around) = base64_inside(found.text().as_bytes(), before, alphabet);
                    texts.push(text);
                    patterns.push(Pattern { secret, around });
                }
            }
        }
        let automaton = (!texts.is_empty())
            .then(|| {
                AhoCorasick::builder()
                    .ascii_case_insensitive(true)
                    .build(&texts)
            })
            .transpose()
            .map_err(|error| HttpError::Secret {
                name: secrets
                    .iter()
                    .map(crate::secret::Secret::name)
                    .collect::<Vec<_>>()
                    .join(", "),
                reason: format!(
                    "these cannot be looked for together ({error}); use fewer or shorter ones"
                ),
            })?;
        Ok(Self {
            automaton,
            patterns,
            secrets: plain,
            marks,
        })
    }

    /// Returns `bytes` without secrets.
    pub(crate) fn redact(&self, bytes: Vec<u8>) -> Vec<u8> {
        let Some(automaton) = &self.automaton else {
            return bytes;
        };
        let mut finds = self.find(automaton, &bytes);
        for (mark, unescape) in ESCAPES {
            if let Some(plain) = Unescaped::read(&bytes, mark, unescape) {
                let found = self.find(automaton, &plain.bytes);
                finds.extend(
                    found
                        .into_iter()
                        .map(|(range, secret)| (plain.source(&range), secret)),
                );
                finds.extend(self.find_inside_escapes(&bytes, mark, unescape));
            }
        }
        if finds.is_empty() {
            return bytes;
        }
        finds.sort_by_key(|(range, secret)| (range.start, *secret));
        let mut redacted = Vec::with_capacity(bytes.len());
        let mut done = 0;
        for (range, secret) in finds {
            // Matches overlap if one secret is part of another, or repeats itself.
            if range.start >= done {
                redacted.extend_from_slice(&bytes[done..range.start]);
                redacted.extend_from_slice(self.marks[secret].as_bytes());
            }
            done = done.max(range.end);
        }
        redacted.extend_from_slice(&bytes[done..]);
        redacted
    }

    /// Returns `bytes` as text, without secrets.
    pub(crate) fn redact_text(&self, bytes: &[u8]) -> String {
        String::from_utf8_lossy(&self.redact(bytes.to_vec())).into_owned()
    }

    /// Finds secrets that begin inside an escape. Unescaping takes their first characters for those of the escape: `%`
    /// before the secret `0a..`.
    fn find_inside_escapes(&self, bytes: &[u8], mark: u8, unescape: Unescape) -> Vec<Find> {
        let mut finds = Vec::new();
        let marks = (0..bytes.len()).filter(|at| bytes[*at] == mark);
        let escapes = marks.filter_map(|at| Some((at, unescape(&bytes[at..])?.1)));
        for start in escapes.flat_map(|(at, length)| at + 1..at + length) {
            for (number, secret) in self.secrets.iter().enumerate() {
                if let Some(end) = spelled_end(bytes, start, secret, unescape) {
                    finds.push((start..end, number));
                }
            }
        }
        finds
    }

    fn find(&self, automaton: &AhoCorasick, bytes: &[u8]) -> Vec<Find> {
        let is_base64 = |byte: &&u8| STANDARD.contains(byte) || URL_SAFE.contains(byte);
        automaton
            .find_overlapping_iter(bytes)
            .map(|found| {
                let Pattern { secret, around } = &self.patterns[found.pattern()];
                let (before, after) = (&bytes[..found.start()], &bytes[found.end()..]);
                let before = before
                    .iter()
                    .rev()
                    .take(around[0])
                    .take_while(is_base64)
                    .count();
                let after = after.iter().take(around[1]).take_while(is_base64).count();
                (found.start() - before..found.end() + after, *secret)
            })
            .collect()
    }
}

/// The base64 characters that depend on `text` alone, if `before` bytes (modulo 3) precede it. Also returns the number
/// of characters on the left and on the right that it shares with its neighbours.
fn base64_inside(text: &[u8], before: usize, alphabet: &[u8; 64]) -> (Vec<u8>, [usize; 2]) {
    let skipped = (3 - before) % 3;
    let (groups, rest) = text[skipped..].as_chunks::<3>();
    let characters = groups.iter().flat_map(|[a, b, c]| {
        let bits = u32::from_be_bytes([0, *a, *b, *c]);
        [18, 12, 6, 0].map(|shift| alphabet[(bits >> shift) as usize & 63])
    });
    let shared = |bytes: usize| if bytes == 0 { 0 } else { bytes + 1 };
    (characters.collect(), [shared(skipped), shared(rest.len())])
}

/// Reads an escape at the start of some bytes. Returns the byte that it means, and its length.
type Unescape = fn(&[u8]) -> Option<(u8, usize)>;

/// The escapes of URLs and forms, and of JSON, by their first byte.
const ESCAPES: [(u8, Unescape); 2] = [(b'%', percent), (b'\\', backslash)];

/// The end of a secret that begins at `start`, each of its characters as it is or escaped. `None` if it is not there.
fn spelled_end(bytes: &[u8], start: usize, secret: &[u8], unescape: Unescape) -> Option<usize> {
    let mut at = start;
    for wanted in secret {
        let rest = bytes.get(at..)?;
        let is_wanted = |byte: &u8| byte.eq_ignore_ascii_case(wanted);
        at += match unescape(rest) {
            Some((byte, length)) if is_wanted(&byte) => length,
            _ if rest.first().is_some_and(is_wanted) => 1,
            _ => return None,
        };
    }
    Some(at)
}

fn percent(bytes: &[u8]) -> Option<(u8, usize)> {
    match bytes {
        [b'%', high, low, ..] => Some((hexadecimal([*high, *low])?, 3)),
        _ => None,
    }
}

fn backslash(bytes: &[u8]) -> Option<(u8, usize)> {
    match bytes {
        [b'\\', b'u', b'0', b'0', high, low, ..] => Some((hexadecimal([*high, *low])?, 6)),
        [b'\\', escaped @ (b'"' | b'/' | b'\\' | b'\''), ..] => Some((*escaped, 2)),
        _ => None,
    }
}

fn hexadecimal(digits: [u8; 2]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(digits[0])? << 4 | digit(digits[1])?) as u8)
}

/// Bytes after unescaping, with the way back to the original.
struct Unescaped {
    bytes: Vec<u8>,
    /// For each escape, the position of its byte in `bytes`, and the number of bytes by which `bytes` is shorter after
    /// it.
    escapes: Vec<(usize, usize)>,
}

impl Unescaped {
    /// Unescapes bytes. Returns `None` if there is no escape, because then nothing new can be found.
    fn read(source: &[u8], mark: u8, unescape: Unescape) -> Option<Self> {
        if !source.contains(&mark) {
            return None;
        }
        let mut bytes = Vec::new();
        let mut escapes: Vec<(usize, usize)> = Vec::new();
        let mut at = 0;
        while let Some(&byte) = source.get(at) {
            if let Some((byte, length)) = unescape(&source[at..]) {
                let shorter = escapes.last().map_or(0, |(_, shorter)| *shorter);
                escapes.push((bytes.len(), shorter + length - 1));
                bytes.push(byte);
                at += length;
            } else {
                bytes.push(byte);
                at += 1;
            }
        }
        (!escapes.is_empty()).then_some(Self { bytes, escapes })
    }

    /// The range of the original from which `range` of `bytes` came.
    fn source(&self, range: &Range<usize>) -> Range<usize> {
        let source = |at: usize| {
            let escapes_before = self.escapes.partition_point(|(place, _)| *place < at);
            let last = escapes_before.checked_sub(1);
            at + last.map_or(0, |last| self.escapes[last].1)
        };
        source(range.start)..source(range.end)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;
    use crate::hosts::Hosts;
    use crate::rules::{HostRule, SecretRule};

    fn redactor(secrets: &[(&str, &str)]) -> Redactor {
        let host = "api.test".to_owned();
        let hosts = Hosts::open(&BTreeMap::from([(host.clone(), HostRule::default())])).unwrap();
        let files: Vec<_> = secrets
            .iter()
            .map(|(name, text)| {
                let mut file = tempfile::NamedTempFile::new().unwrap();
                file.write_all(text.as_bytes()).unwrap();
                ((*name).to_owned(), file)
            })
            .collect();
        let rules = files.iter().map(|(name, file)| {
            let rule = SecretRule {
                file: Some(file.path().to_owned()),
                host: host.clone(),
                ..SecretRule::default()
            };
            (name.clone(), rule)
        });
        Redactor::new(&Secrets::open(&rules.collect(), &hosts).unwrap()).unwrap()
    }

    fn base64(bytes: &[u8], alphabet: &[u8; 64]) -> String {
        let mut text = String::new();
        for group in bytes.chunks(3) {
            let bits = (0..3).fold(0_usize, |bits, at| {
                bits << 8 | group.get(at).map_or(0, |byte| usize::from(*byte))
            });
            for at in 0..4 {
                let character = alphabet[bits >> (18 - 6 * at) & 63];
                text.push(if at <= group.len() {
                    char::from(character)
                } else {
                    '='
                });
            }
        }
        text
    }

    #[test]
    fn every_spelling_of_a_secret_is_taken_out_and_nothing_else() {
        let redactor = redactor(&[("key", "s3cr3t/+%\"value")]);
        for (answer, seen) in [
            (
                "nothing here, not even s3cr3t",
                "nothing here, not even s3cr3t",
            ),
            ("<s3cr3t/+%\"value>", "<[secret key]>"),
            ("<S3CR3T/+%\"VALUE>", "<[secret key]>"),
            ("<s3cr3t%2f%2B%25%22value>", "<[secret key]>"),
            (
                "<%73%33%63%72%33%74%2f%2B%25%22value>%20",
                "<[secret key]>%20",
            ),
            (r#"<s3cr3t/+%\"value>"#, "<[secret key]>"),
            (r"<\u00733cr3t\/+%\u0022value>\n", r"<[secret key]>\n"),
            // Base64 of the secret `s3cr3t/+%"value`: alone, with `user:` before it, and with `user:` before and `!`
            // after it.
            ("<czNjcjN0LyslInZhbHVl>", "<[secret key]>"),
            ("dXNlcjpzM2NyM3QvKyUidmFsdWU=", "dXNlcj[secret key]="),
            ("dXNlcjpzM2NyM3QvKyUidmFsdWUh", "dXNlcj[secret key]h"),
            (
                "czNjcjN0LyslInZhbHVlczNjcjN0LyslInZhbHVl",
                "[secret key][secret key]",
            ),
        ] {
            assert_eq!(redactor.redact_text(answer.as_bytes()), seen, "{answer}");
        }
    }

    #[test]
    fn an_escape_before_a_secret_does_not_hide_its_first_characters() {
        let redactor = redactor(&[("key", "0aA!AAaAAaA!"), ("other", "u0041-and-more")]);
        for (answer, seen) in [
            ("5%0aA!AAaAAa%41!", "5%[secret key]"),
            ("5%50aA!AAaAAa%41!", "5%5[secret key]"),
            (r"\u0041-and-m\u006fre", r"\[secret other]"),
        ] {
            assert_eq!(redactor.redact_text(answer.as_bytes()), seen, "{answer}");
        }
    }

    #[test]
    fn secrets_that_overlap_leave_nothing_of_either() {
        let redactor = redactor(&[
            ("a", "one-two-three"),
            ("b", "three-four-five"),
            ("c", "two-three"),
        ]);
        assert_eq!(
            redactor.redact_text(b"<one-two-three-four-five>"),
            "<[secret a]>"
        );
        assert_eq!(redactor.redact_text(b"<two-three>"), "<[secret c]>");
    }

    proptest! {
        #[test]
        fn no_spelling_survives_anywhere(
            secret in "[!-~]{12,40}",
            before in prop::collection::vec(any::<u8>(), 0..8),
            after in prop::collection::vec(any::<u8>(), 0..8),
            escaped in prop::collection::vec(any::<bool>(), 40),
        ) {
            let redactor = redactor(&[("key", &secret)]);
            let whole = [&before, secret.as_bytes(), &after].concat();
            let percent: String = secret
                .bytes()
                .zip(escaped)
                .map(|(byte, escaped)| {
                    // As in every encoder, a percent sign of the secret itself is encoded.
                    if escaped || byte == b'%' { format!("%{byte:02x}") } else { char::from(byte).into() }
                })
                .collect();
            for spelling in [
                whole.clone(),
                base64(&whole, STANDARD).into_bytes(),
                base64(&whole, URL_SAFE).into_bytes(),
                [&before, percent.as_bytes(), &after].concat(),
            ] {
                let redacted = redactor.redact(spelling.clone());
                let text = String::from_utf8_lossy(&redacted);
                prop_assert!(text.contains("[secret key]"), "{text}");
                let left = text.replace("[secret key]", "");
                // Only the bytes around the secret may be left, in three characters for two bytes.
                prop_assert!(left.len() <= 3 * 3 * (before.len() + after.len()) + 4, "{left}");
                prop_assert!(!left.contains(&secret));
            }
        }
    }
}
