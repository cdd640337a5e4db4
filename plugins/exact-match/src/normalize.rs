//! `normalize_answer` of SQuAD's official script (evaluate-v1.1.py, Rajpurkar et al. 2016; the same in
//! HotpotQA's hotpot_evaluate_v1.py), step by step.

/// Lower case, no punctuation, no articles, single spaces.
pub(crate) fn normalize(answer: &str) -> String {
    let lower = answer.to_lowercase();
    // Python's `string.punctuation`, which is ASCII only.
    let unpunctuated: String = lower
        .chars()
        .filter(|c| !c.is_ascii_punctuation())
        .collect();
    let without = without_articles(&unpunctuated);
    without.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `re.sub(r'\b(a|an|the)\b', ' ', text)`: each article that is a whole run of word characters becomes a space.
fn without_articles(text: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let inside = is_word(first);
        let end = rest.find(|c| is_word(c) != inside).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        kept.push_str(if matches!(run, "a" | "an" | "the") {
            " "
        } else {
            run
        });
        rest = after;
    }
    kept
}
