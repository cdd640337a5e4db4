//! Text to train a small tokenizer on.

use rlf_dialogue::split::Split;

use super::tasks::{CountryTasks, Stage};

/// Replaces a name. A digit is always a token of its own, so no merge forms around it.
const MASK: &str = "9";

impl CountryTasks {
    /// Texts of training questions, calls, answers and observations, with every name masked. A tokenizer trained on
    /// them learns whole words for the vocabulary of the tasks, and splits names into bytes and short pieces.
    ///
    /// The texts have no markers of a chat template: those are tokens of their own, and pieces of `assistant` learnt
    /// from them would later be rare pieces of names. They do not have the list of tools either. If that list uses
    /// other words than the questions, add a few hundred copies of it.
    pub fn tokenizer_corpus(&self, tasks: u64) -> impl Iterator<Item = String> + Send + '_ {
        // Questions of both training stages, because words such as `over` must be whole in the rare ones too.
        let number = |index| [(Stage::Sft, index), (Stage::Rl, index)];
        (0..tasks).flat_map(number).map(|(stage, index)| {
            let (_, question) = self.question(Split::Train, stage, index);
            let mut texts = vec![question.words(self.table())];
            for (turn, observations) in self.solve(&question) {
                texts.extend(turn.bodies());
                texts.extend(observations);
            }
            let reached = question
                .facts()
                .into_iter()
                .filter_map(|fact| fact.target(self.table()));
            let rows: Vec<usize> = question.named().into_iter().chain(reached).collect();
            let mut names: Vec<&str> = Vec::new();
            for row in rows.into_iter().map(|row| &self.table().rows()[row]) {
                names.extend([row.name.as_str(), row.capital.as_str()]);
                names.extend(
                    row.neighbour
                        .map(|neighbour| self.table().rows()[neighbour].name.as_str()),
                );
            }
            // Longer names first: one may be part of another.
            names.sort_by_key(|name| std::cmp::Reverse(name.len()));
            names
                .iter()
                .fold(texts.join("\n"), |text, name| mask(&text, name))
        })
    }
}

/// The text with this name masked wherever it is not part of a longer word: a name such as `argu` must not
/// tear `arguments` apart.
fn mask(text: &str, name: &str) -> String {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(name) {
        masked.push_str(before);
        let is_part = is_letter(masked.chars().next_back()) || is_letter(after.chars().next());
        masked.push_str(if is_part { name } else { MASK });
        rest = after;
    }
    masked + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_masked_as_whole_words_only() {
        assert_eq!(
            mask(r#"{"arguments":{"of":"argu"}}"#, "argu"),
            r#"{"arguments":{"of":"9"}}"#
        );
        assert_eq!(mask("guinea bissau, guinea", "guinea bissau"), "9, guinea");
        assert_eq!(mask("nigeria niger", "niger"), "nigeria 9");
        assert_eq!(mask("", "niger"), "");
    }
}
