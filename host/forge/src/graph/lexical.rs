//! The default measure of similarity: words that two parameters share.

use std::collections::{BTreeSet, HashMap};
use std::error::Error;

use super::similarity::{Score, Similarity, Wording};

/// Weight of the name. The description has the rest.
const NAME_WEIGHT: f64 = 0.7;

/// Words that say nothing about a parameter.
const STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "for", "from", "has", "if", "in", "is",
    "it", "its", "of", "on", "only", "or", "s", "so", "that", "the", "this", "to", "was", "were",
    "what", "which", "who", "with",
];

/// Compares the words of names and descriptions, without a model and without looking at other parameters: an edge
/// depends on its two ends alone.
///
/// With `N` and `D` the sets of words of name and description, and Dice's coefficient
/// `dice(A, B) = 2 |A ∩ B| / (|A| + |B|)`:
///
/// ```text
/// score = 0.7 dice(N1, N2) + 0.3 dice(D1, D2)
/// score = dice(N1, N2)                           if a description has no words
/// ```
///
/// Words are split at punctuation and capitals (`orderId`, `order_id` and `order.id` have the same two), lower-case, in
/// the singular, and without stop words in descriptions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lexical {
    /// Minimum score of an edge.
    pub threshold: f64,
}

impl Lexical {
    /// The default threshold. On the shipped examples, read as JSON schemas in which keys are plain text, it finds the
    /// pairs of outputs and inputs that mean the same with the highest F1; docs/forge-results.md has the table.
    pub const THRESHOLD: f64 = 0.85;
}

impl Default for Lexical {
    fn default() -> Self {
        Self {
            threshold: Self::THRESHOLD,
        }
    }
}

impl Similarity for Lexical {
    fn name(&self) -> &'static str {
        "shared words"
    }

    fn threshold(&self) -> f64 {
        self.threshold
    }

    fn prepare<'a>(
        &'a self,
        wordings: &[Wording<'_>],
    ) -> Result<Score<'a>, Box<dyn Error + Send + Sync>> {
        let mut numbers = HashMap::new();
        let mut numbered = |words: Vec<String>| -> BTreeSet<usize> {
            let number = |word| {
                let next = numbers.len();
                *numbers.entry(word).or_insert(next)
            };
            words.into_iter().map(number).collect()
        };
        let mut sets = Vec::with_capacity(wordings.len());
        for wording in wordings {
            let mut description = words(wording.description);
            description.retain(|word| !STOP_WORDS.contains(&word.as_str()));
            sets.push((numbered(words(wording.name)), numbered(description)));
        }
        Ok(Box::new(move |one, other| {
            let ((name, description), (other_name, other_description)) = (&sets[one], &sets[other]);
            let names = dice(name, other_name);
            if description.is_empty() || other_description.is_empty() {
                return names;
            }
            NAME_WEIGHT * names + (1.0 - NAME_WEIGHT) * dice(description, other_description)
        }))
    }
}

fn dice(one: &BTreeSet<usize>, other: &BTreeSet<usize>) -> f64 {
    let total = one.len() + other.len();
    if total == 0 {
        return 0.0;
    }
    2.0 * one.intersection(other).count() as f64 / total as f64
}

/// The words of a text in their order: split at punctuation and before capitals, lower-case, in the singular.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut after_small = false;
    for character in text.chars() {
        let starts = character.is_uppercase() && after_small;
        if (starts || !character.is_alphanumeric()) && !word.is_empty() {
            words.push(stem(std::mem::take(&mut word)));
        }
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        }
        after_small = character.is_lowercase() || character.is_numeric();
    }
    if !word.is_empty() {
        words.push(stem(word));
    }
    words
}

/// The stem of a word, which is compared and never shown: `copies` is `copy`, `ids` is `id`; `address` and `status` stay.
/// Other stems make other edges, and so other tasks of the same seed. Words that people read are in `english`.
fn stem(word: String) -> String {
    if word.len() > 4
        && let Some(stem) = word.strip_suffix("ies")
    {
        return format!("{stem}y");
    }
    let stays = STOP_WORDS.contains(&word.as_str())
        || ["ss", "us", "is"]
            .iter()
            .any(|ending| word.ends_with(ending));
    match word.strip_suffix('s') {
        Some(stem) if stem.len() > 1 && !stays => stem.to_owned(),
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score<'a>(one: (&'a str, &'a str), other: (&'a str, &'a str)) -> f64 {
        let wordings = [one, other].map(|(name, description)| Wording {
            name,
            kind: "text".into(),
            description,
        });
        let lexical = Lexical::default();
        let score = lexical.prepare(&wordings).unwrap();
        assert_eq!(score(0, 1), score(1, 0));
        score(0, 1)
    }

    #[test]
    fn words_are_split_at_punctuation_and_capitals_and_have_no_plural() {
        assert_eq!(words("order_id"), ["order", "id"]);
        assert_eq!(words("orderId"), ["order", "id"]);
        assert_eq!(words("orders.ids"), ["order", "id"]);
        assert_eq!(
            words("the copies' Address, its STATUS"),
            ["the", "copy", "address", "its", "status"]
        );
        assert_eq!(words("line2Address"), ["line2", "address"]);
        assert_eq!(words("größe_Größe"), ["größe", "größe"]);
        assert_eq!(words(" -- "), Vec::<String>::new());
    }

    #[test]
    fn the_score_is_the_formula() {
        let near = |score: f64, expected: f64| {
            assert!(
                (score - expected).abs() < 1e-12,
                "{score} is not {expected}"
            );
        };
        near(
            score(("order_id", ""), ("orderId", "Number of the order")),
            1.0,
        );
        near(
            score(
                ("order_id", "Order number"),
                ("orders.id", "Number of an order"),
            ),
            1.0,
        );
        // Dice of {order, id} and {id} is 2/3.
        near(score(("order_id", ""), ("id", "")), 2.0 / 3.0);
        // {number, card} and {number, member, card}: 4/5.
        near(
            score(
                ("member_id", "Number on the card"),
                ("member_id", "Number on the member's card"),
            ),
            0.7 + 0.3 * 0.8,
        );
        near(
            score(
                ("fine", "Fine owed, in cents"),
                ("cents", "How much is paid"),
            ),
            0.0,
        );
        near(score(("", ""), ("", "")), 0.0);
    }
}
