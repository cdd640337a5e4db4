//! The scores of one answer against one reference: [`exact`] and [`f1`] of normalised texts, [`verbatim`] of
//! texts as written.

use std::collections::BTreeMap;

/// 1 if both are the same. An empty answer matches nothing.
pub(crate) fn exact(answer: &str, reference: &str) -> f64 {
    if !answer.is_empty() && answer == reference {
        1.0
    } else {
        0.0
    }
}

/// 1 if both are the same characters, apart from white space around them. An empty answer matches nothing.
pub(crate) fn verbatim(answer: &str, reference: &str) -> f64 {
    exact(answer.trim(), reference.trim())
}

/// Harmonic mean of the shares of common words (counted as often as they occur in both).
///
/// As in HotpotQA's script, a yes or no (or "noanswer") earns nothing unless both sides say it.
pub(crate) fn f1(answer: &str, reference: &str) -> f64 {
    let closed = |text: &str| matches!(text, "yes" | "no" | "noanswer");
    if (closed(answer) || closed(reference)) && answer != reference {
        return 0.0;
    }
    let (answer, reference) = (words(answer), words(reference));
    let common: usize = answer
        .counts
        .iter()
        .map(|(word, count)| *count.min(reference.counts.get(word).unwrap_or(&0)))
        .sum();
    if common == 0 {
        return 0.0;
    }
    let precision = common as f64 / answer.total as f64;
    let recall = common as f64 / reference.total as f64;
    2.0 * precision * recall / (precision + recall)
}

struct Words<'a> {
    counts: BTreeMap<&'a str, usize>,
    total: usize,
}

fn words(text: &str) -> Words<'_> {
    let mut words = Words {
        counts: BTreeMap::new(),
        total: 0,
    };
    for word in text.split_whitespace() {
        *words.counts.entry(word).or_default() += 1;
        words.total += 1;
    }
    words
}
