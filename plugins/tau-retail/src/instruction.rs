//! A task's instruction as the single message of the user.
//!
//! tau-bench tells a model that plays the user who it is: "Your name is .. You want ..". Without such a model the
//! user says all of it at once, in the first person. The rules are fixed:
//!
//! | word | becomes |
//! |---|---|
//! | your, yours, yourself | my, mine, myself |
//! | you | `me` after a word of [`BEFORE_OBJECT`] or at the end of a clause, else `I` |
//! | you are, you were, you aren't, you weren't, are you, were you | I am, I was, I am not, I wasn't, am I, was I |
//! | you're, you've, you'll, you'd | I am, I've, I'll, I'd |
//!
//! A word is the text between white space, without the punctuation around it; addresses, ids and mail addresses are
//! not among these words. Text in braces is data and stays unchanged. An upper-case first letter stays upper case.
//! [`CLOSING`] follows, because the agent's rules ask for the user's confirmation.

/// Ends the message.
pub(crate) const CLOSING: &str = "Please do all of this now. I confirm every change in advance, so \
                                  there is no need to ask me; just tell me when it is done.";

/// Prepositions, and verbs that are not nouns: after them, `you` is the object.
const BEFORE_OBJECT: [&str; 29] = [
    "about",
    "against",
    "allow",
    "allows",
    "ask",
    "asked",
    "asks",
    "at",
    "by",
    "for",
    "from",
    "gave",
    "give",
    "gives",
    "helps",
    "inform",
    "let",
    "lets",
    "of",
    "on",
    "remind",
    "tell",
    "tells",
    "to",
    "told",
    "unsubscribe",
    "upon",
    "with",
    "without",
];

/// The message of a user with this instruction.
pub(crate) fn message(instruction: &str) -> String {
    let mut message = first_person(instruction);
    if !message.is_empty() {
        // A separate paragraph, because not every instruction ends with a full stop.
        message.push_str("\n\n");
    }
    message.push_str(CLOSING);
    message
}

/// The instruction in the first person. White space is kept, except around it.
pub(crate) fn first_person(instruction: &str) -> String {
    let mut out = String::with_capacity(instruction.len());
    let mut chunks = instruction
        .trim()
        .split_inclusive(char::is_whitespace)
        .peekable();
    let mut depth = 0_usize;
    let mut before = Before::default();
    while let Some(chunk) = chunks.next() {
        let data = depth > 0 || chunk.contains('{');
        let braces = |brace| chunk.matches(brace).count();
        depth = (depth + braces('{')).saturating_sub(braces('}'));
        if data {
            out.push_str(chunk);
            before = Before::default();
            continue;
        }
        let (open, word, close) = parts(chunk);
        let next = chunks.peek().map(|next| parts(next));
        let ends = close.trim_end() != "" || next.is_none();
        let before_you = close.trim_end() == ""
            && next.is_some_and(|(open, word, _)| open.is_empty() && lower(word) == "you");
        let (changed, subject) = changed(word, &before, ends, before_you);
        out.push_str(open);
        out.push_str(&changed);
        out.push_str(close);
        before = Before {
            word: if ends { String::new() } else { lower(word) },
            subject: subject && !ends,
        };
    }
    out
}

/// The words before a word in its clause.
#[derive(Default)]
struct Before {
    word: String,
    /// It was `you` as the subject.
    subject: bool,
}

/// Punctuation, word, punctuation and white space.
fn parts(chunk: &str) -> (&str, &str, &str) {
    let rest = chunk.trim_start_matches(|c: char| !c.is_alphanumeric());
    let word = rest.trim_end_matches(|c: char| !c.is_alphanumeric());
    let open = &chunk[..chunk.len() - rest.len()];
    (open, word, &rest[word.len()..])
}

/// Lower case, with one kind of apostrophe.
fn lower(word: &str) -> String {
    word.to_lowercase().replace('\u{2019}', "'")
}

/// The word in the first person, and whether it is the subject now.
fn changed(word: &str, before: &Before, ends: bool, before_you: bool) -> (String, bool) {
    let object = ends || BEFORE_OBJECT.contains(&before.word.as_str());
    let (changed, subject) = match lower(word).as_str() {
        "you" if object => ("me", false),
        "you" => ("I", true),
        "you're" => ("I am", true),
        "you've" => ("I've", true),
        "you'll" => ("I'll", true),
        "you'd" => ("I'd", true),
        "your" => ("my", false),
        "yours" => ("mine", false),
        "yourself" => ("myself", false),
        "are" if before.subject || before_you => ("am", false),
        "were" if before.subject || before_you => ("was", false),
        "aren't" if before.subject => ("am not", false),
        "weren't" if before.subject => ("wasn't", false),
        _ => (word, false),
    };
    let upper = word.starts_with(char::is_uppercase);
    let mut letters = changed.chars();
    let changed = match letters.next() {
        Some(first) if upper => first.to_uppercase().chain(letters).collect(),
        _ => changed.to_owned(),
    };
    (changed, subject)
}
