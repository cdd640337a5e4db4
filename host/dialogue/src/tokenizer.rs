//! Text to token ids and back, with a wall between text that may name control tokens and text
//! that may not.
//!
//! A `tokenizer.json` has two vocabularies: the one of its BPE model, and *added tokens*
//! (`<|im_end|>`, `<tool_call>`, ...), which are recognised in the text before the model sees it.
//! Only text of the host's own (the chat template's) may produce added tokens. Everything else
//! goes through [`Tokenizer::encode_untrusted`], for which they do not exist.

use std::path::{Path, PathBuf};

use aho_corasick::{AhoCorasick, MatchKind};
use tokenizers::models::ModelWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

/// The reason why a tokenizer could not be loaded, trained or saved.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// The file could not be read.
    #[error("cannot read the tokenizer {}: {source}", path.display())]
    Read {
        /// The file asked for.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not a `tokenizer.json`.
    #[error("{} is not a Hugging Face tokenizer.json: {message}{}", path.display(), hint(.start))]
    Parse {
        /// The file asked for.
        path: PathBuf,
        /// The parser's error.
        message: String,
        /// The start of the file.
        start: String,
    },
    /// A tokenizer of a kind that cannot encode every text.
    #[error(
        "the tokenizer {origin} is {found}; only byte-level BPE (Qwen, Llama 3, GPT-2) is \
         supported, because it can hold every text without an unknown token"
    )]
    NotByteLevel {
        /// The file, or a name instead of one.
        origin: String,
        /// The kind that was found.
        found: String,
    },
    /// The file could not be written.
    #[error("cannot write the tokenizer to {}: {message}", path.display())]
    Write {
        /// The file to be written.
        path: PathBuf,
        /// The system's error.
        message: String,
    },
    /// An option of the training cannot be used.
    #[error("cannot train the tokenizer: `{key}`: {problem}")]
    Option {
        /// The option.
        key: &'static str,
        /// The mistake, and what to write instead.
        problem: String,
    },
    /// Training failed.
    #[error("cannot train the tokenizer: {0}")]
    Train(String),
}

fn hint(start: &str) -> &'static str {
    if start.starts_with("version https://git-lfs") {
        " (it is a Git LFS pointer: fetch the real file with `git lfs pull`)"
    } else {
        ""
    }
}

/// A piece of trusted text: an added token, or the text between two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    Added(u32),
    Plain(&'t str),
}

struct AddedToken {
    id: u32,
    content: String,
    /// True if the token swallows the white space before it.
    lstrip: bool,
    /// True if the token swallows the white space after it.
    rstrip: bool,
}

/// Maximum size of a tokenizer.json, in bytes. A tokenizer with 256,000 tokens has about 35 MB.
const MAX_BYTES: u64 = 1 << 30;

/// A byte-level BPE tokenizer.
pub struct Tokenizer {
    /// The tokenizer as loaded, which [`Tokenizer::save`] writes.
    full: tokenizers::Tokenizer,
    /// The same model, normaliser and pre-tokenizer, without any added token.
    plain: tokenizers::Tokenizer,
    /// The added tokens, sorted by id.
    added: Vec<AddedToken>,
    /// Finds added tokens in trusted text; patterns in the order of `added`.
    finder: Option<AhoCorasick>,
    /// For each id, true if untrusted text must not produce it.
    forbidden: Vec<bool>,
    /// The bytes of each id.
    bytes: Vec<Option<Box<[u8]>>>,
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("vocab_size", &self.vocab_size())
            .field("added_tokens", &self.added.len())
            .finish_non_exhaustive()
    }
}

impl Tokenizer {
    /// Reads a Hugging Face `tokenizer.json`.
    pub fn load(path: &Path) -> Result<Self, TokenizerError> {
        let bytes = rlf_files::read(path, MAX_BYTES).map_err(|source| TokenizerError::Read {
            path: path.to_owned(),
            source,
        })?;
        let parsed = tokenizers::Tokenizer::from_bytes(&bytes).map_err(|error| {
            let start = String::from_utf8_lossy(&bytes[..bytes.len().min(64)]).into_owned();
            TokenizerError::Parse {
                path: path.to_owned(),
                message: error.to_string(),
                start,
            }
        })?;
        Self::wrap(parsed, &path.display().to_string())
    }

    /// Checks a tokenizer and makes its tables. `origin` names it in messages.
    pub(crate) fn wrap(
        mut full: tokenizers::Tokenizer,
        origin: &str,
    ) -> Result<Self, TokenizerError> {
        let refuse = |found: String| TokenizerError::NotByteLevel {
            origin: origin.to_owned(),
            found,
        };
        let ModelWrapper::BPE(_) = full.get_model() else {
            return Err(refuse("not a BPE model".into()));
        };
        let alphabet = ByteAlphabet::new();
        let missing = alphabet.chars.iter().filter(|c| {
            let mut buffer = [0; 4];
            tokenizers::Model::token_to_id(full.get_model(), c.encode_utf8(&mut buffer)).is_none()
        });
        let missing = missing.count();
        if missing > 0 {
            return Err(refuse(format!(
                "without a token for {missing} of the 256 bytes"
            )));
        }
        // The tokenizer's own limits would cut text silently.
        full.with_truncation(None)
            .map_err(|error| refuse(error.to_string()))?;
        full.with_padding(None);

        let mut plain = tokenizers::Tokenizer::new(full.get_model().clone());
        plain
            .with_normalizer(full.get_normalizer().cloned())
            .map_err(|error| refuse(error.to_string()))?;
        plain.with_pre_tokenizer(full.get_pre_tokenizer().cloned());
        plain
            .encode_fast("probe \u{0} \u{fffd} \u{65e5}\u{672c} \u{1f600}", false)
            .map_err(|error| refuse(format!("unable to encode every text ({error})")))?;

        let mut added: Vec<AddedToken> = full
            .get_added_tokens_decoder()
            .into_iter()
            .filter(|(_, token)| !token.content.is_empty())
            .map(|(id, token)| AddedToken {
                id,
                content: token.content,
                lstrip: token.lstrip,
                rstrip: token.rstrip,
            })
            .collect();
        added.sort_by_key(|token| token.id);
        let finder = if added.is_empty() {
            None
        } else {
            let finder = AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(added.iter().map(|token| &token.content))
                .map_err(|error| refuse(format!("with unusable added tokens ({error})")))?;
            Some(finder)
        };

        let vocabulary = full.get_vocab(true);
        let size = vocabulary
            .values()
            .max()
            .map_or(0, |highest| *highest as usize + 1);
        let mut bytes = vec![None; size];
        for (token, id) in &vocabulary {
            bytes[*id as usize] = Some(alphabet.decode(token));
        }
        let mut forbidden = vec![false; size];
        for token in &added {
            bytes[token.id as usize] = Some(token.content.as_bytes().into());
            // A token of one character has no other spelling, and controls nothing.
            forbidden[token.id as usize] = token.content.chars().nth(1).is_some();
        }
        Ok(Self {
            full,
            plain,
            added,
            finder,
            forbidden,
            bytes,
        })
    }

    /// The tokenizer as the text of a `tokenizer.json`, which transformers reads.
    pub fn to_json(&self) -> Result<String, TokenizerError> {
        self.full
            .to_string(true)
            .map_err(|error| TokenizerError::Write {
                path: "tokenizer.json".into(),
                message: error.to_string(),
            })
    }

    /// Writes [`Self::to_json`]. The file is written completely or not at all.
    pub fn save(&self, path: &Path) -> Result<(), TokenizerError> {
        rlf_files::write(path, self.to_json()?.as_bytes()).map_err(|error| TokenizerError::Write {
            path: path.to_owned(),
            message: error.to_string(),
        })
    }

    /// Encodes text that may contain control tokens: the host's own, a template's, or a demonstrator's.
    pub fn encode_trusted(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3 + 1);
        for piece in self.pieces(text) {
            match piece {
                Piece::Added(id) => ids.push(id),
                Piece::Plain(text) => self.encode_plain(text, &mut ids),
            }
        }
        ids
    }

    /// Encodes any other text. The ids never contain an added token.
    pub fn encode_untrusted(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3 + 1);
        self.encode_untrusted_into(text, &mut ids);
        ids
    }

    pub(crate) fn encode_untrusted_into(&self, text: &str, ids: &mut Vec<u32>) {
        let start = ids.len();
        self.encode_plain(text, ids);
        if ids[start..].iter().any(|id| self.is_forbidden(*id)) {
            ids.truncate(start);
            self.encode_in_halves(text, ids);
        }
    }

    /// Encodes text whose merges reach an added token, because that token is also in the model's vocabulary. The text is
    /// cut inside that token until no piece spells it.
    fn encode_in_halves(&self, text: &str, ids: &mut Vec<u32>) {
        let start = ids.len();
        self.encode_plain(text, ids);
        if !ids[start..].iter().any(|id| self.is_forbidden(*id)) {
            return;
        }
        ids.truncate(start);
        let forbidden = |token: &&AddedToken| self.is_forbidden(token.id);
        let found = self
            .added
            .iter()
            .filter(forbidden)
            .filter_map(|token| text.find(&token.content).map(|at| (at, &token.content)))
            .min_by_key(|(at, _)| *at);
        let middle = found.map_or_else(
            // Normalisation made the token from other text: halve that text.
            || {
                text.char_indices()
                    .nth(text.chars().count() / 2)
                    .map_or(0, |(at, _)| at)
            },
            |(at, content)| at + content.chars().next().map_or(0, char::len_utf8),
        );
        if middle == 0 {
            // One character whose normalised form is a control token has no other spelling.
            return;
        }
        self.encode_in_halves(&text[..middle], ids);
        self.encode_in_halves(&text[middle..], ids);
    }

    fn encode_plain(&self, text: &str, ids: &mut Vec<u32>) {
        if text.is_empty() {
            return;
        }
        // A byte-level BPE has a token for every byte (checked at load), so this cannot fail. If it did, the text would
        // be missing from the sequence, and nothing else would replace it.
        if let Ok(encoding) = self.plain.encode_fast(text, false) {
            ids.extend_from_slice(encoding.get_ids());
        }
    }

    /// Cuts trusted text at its added tokens. The leftmost token comes first, and at one place the longest.
    pub(crate) fn pieces<'t>(&self, text: &'t str) -> Vec<Piece<'t>> {
        let mut pieces = Vec::new();
        let mut done = 0;
        for found in self.finder.iter().flat_map(|finder| finder.find_iter(text)) {
            let token = &self.added[found.pattern().as_usize()];
            let before = text.get(done..found.start()).unwrap_or_default();
            let before = if token.lstrip {
                before.trim_end()
            } else {
                before
            };
            if !before.is_empty() {
                pieces.push(Piece::Plain(before));
            }
            pieces.push(Piece::Added(token.id));
            let after = &text[found.end()..];
            let stripped = if token.rstrip {
                after.len() - after.trim_start().len()
            } else {
                0
            };
            done = found.end() + stripped;
        }
        if done < text.len() {
            pieces.push(Piece::Plain(&text[done..]));
        }
        pieces
    }

    /// Decodes ids to text, special tokens included. Bytes that are not UTF-8, as at the ends of a cut text, become
    /// U+FFFD, and so does an id beyond the vocabulary.
    pub fn decode(&self, ids: &[u32]) -> String {
        let mut bytes = Vec::with_capacity(ids.len() * 4);
        for id in ids {
            match self.bytes.get(*id as usize) {
                Some(Some(token)) => bytes.extend_from_slice(token),
                _ => bytes.extend_from_slice("\u{fffd}".as_bytes()),
            }
        }
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// Number of bytes that [`Self::decode`] makes of an id, in a text that is UTF-8.
    pub(crate) fn byte_len(&self, id: u32) -> usize {
        let bytes = self.bytes.get(id as usize).and_then(Option::as_ref);
        bytes.map_or('\u{fffd}'.len_utf8(), |bytes| bytes.len())
    }

    /// The id of a token of the model or an added token, by its exact content.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.full.token_to_id(token)
    }

    /// Highest id + 1.
    pub fn vocab_size(&self) -> usize {
        self.bytes.len()
    }

    /// Added tokens, by rising id.
    pub fn added_tokens(&self) -> impl Iterator<Item = (u32, &str)> {
        self.added
            .iter()
            .map(|token| (token.id, token.content.as_str()))
    }

    /// True if `id` is an added token that untrusted text may not produce.
    pub(crate) fn is_forbidden(&self, id: u32) -> bool {
        self.forbidden.get(id as usize).copied().unwrap_or(false)
    }
}

/// The byte-level alphabet of GPT-2: one printable character for each byte.
struct ByteAlphabet {
    chars: Vec<char>,
}

impl ByteAlphabet {
    /// Makes the alphabet. Printable Latin-1 characters stand for themselves, every other byte for a character from
    /// U+0100 on (openai/gpt-2, `encoder.py`, `bytes_to_unicode`).
    fn new() -> Self {
        let mut next = 0x100;
        let chars = (0..=255_u8)
            .map(|byte| match byte {
                b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
                _ => {
                    let stand_in = char::from_u32(next).unwrap_or(char::REPLACEMENT_CHARACTER);
                    next += 1;
                    stand_in
                }
            })
            .collect();
        Self { chars }
    }

    /// The bytes of a model token. If the token is not byte-level, its UTF-8 bytes.
    fn decode(&self, token: &str) -> Box<[u8]> {
        let byte = |c: char| match c as u32 {
            code @ 0..=0xff if self.chars[code as usize] == c => Some(code as u8),
            0x100..=0x143 => self
                .chars
                .iter()
                .position(|known| *known == c)
                .map(|at| at as u8),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = token.chars().map(byte).collect();
        bytes
            .unwrap_or_else(|| token.as_bytes().to_vec())
            .into_boxed_slice()
    }
}

/// The library's version of the alphabet, used for training. The one above is used for decoding.
pub(crate) fn library_alphabet() -> std::collections::HashSet<char> {
    ByteLevel::alphabet().into_iter().collect()
}
