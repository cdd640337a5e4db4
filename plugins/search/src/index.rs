//! BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009).
//!
//! The score of a passage is the sum over the words of the query of
//!
//! ```text
//! idf(w) * f * (k1 + 1) / (f + k1 * (1 - b + b * length / mean length))
//! idf(w) = ln(1 + (N - n + 0.5) / (n + 0.5))
//! ```
//!
//! with f the times w occurs in it and n the passages out of N that have w. The `bm25` crate makes the
//! words and the second factor; its own scorer walks hash maps with random keys, so that equal scores
//! come in any order, and compares every word of every candidate. Here each word has the list of its
//! passages, and ties keep the order of the corpus.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

use bm25::{Embedder, EmbedderBuilder, Language};

use crate::corpus::Passage;

/// Hashed words, as the `bm25` crate makes them.
type Word = u32;

/// Passages by the words in them.
pub(crate) struct Index {
    passages: Vec<Passage>,
    embedder: Embedder<Word>,
    /// Per word the passages that have it, with the second factor of the formula, in corpus order.
    postings: HashMap<Word, Vec<(u32, f32)>, BuildHasherDefault<DefaultHasher>>,
}

impl Index {
    pub(crate) fn build(passages: Vec<Passage>, k1: f32, b: f32) -> Self {
        let documents: Vec<String> = passages
            .iter()
            .map(|p| format!("{}\n{}", p.title, p.text))
            .collect();
        let texts: Vec<&str> = documents.iter().map(String::as_str).collect();
        let embedder = EmbedderBuilder::with_fit_to_corpus(Language::English, &texts)
            .k1(k1)
            .b(b)
            .build();
        let mut postings: HashMap<Word, Vec<(u32, f32)>, _> = HashMap::default();
        for (number, text) in texts.iter().enumerate() {
            // A word that occurs twice comes twice, with the same weight.
            let mut words: Vec<(Word, f32)> = embedder
                .embed(text)
                .iter()
                .map(|w| (w.index, w.value))
                .collect();
            words.sort_unstable_by_key(|(word, _)| *word);
            words.dedup_by_key(|(word, _)| *word);
            for (word, weight) in words {
                postings
                    .entry(word)
                    .or_default()
                    .push((number as u32, weight));
            }
        }
        Self {
            passages,
            embedder,
            postings,
        }
    }

    /// The best passages, at most `count`, all with a word of the query.
    pub(crate) fn search(&self, query: &str, count: usize) -> Vec<&Passage> {
        let mut words: Vec<Word> = self.embedder.embed(query).indices().copied().collect();
        words.sort_unstable();
        words.dedup();
        let mut scores = vec![0.0_f32; self.passages.len()];
        for word in words {
            let Some(having) = self.postings.get(&word) else {
                continue;
            };
            let (all, having_it) = (self.passages.len() as f32, having.len() as f32);
            let idf = (1.0 + (all - having_it + 0.5) / (having_it + 0.5)).ln();
            for (passage, weight) in having {
                scores[*passage as usize] += idf * weight;
            }
        }
        let mut found: Vec<usize> = (0..scores.len())
            .filter(|passage| scores[*passage] > 0.0)
            .collect();
        let better = |a: &usize, b: &usize| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b));
        if found.len() > count {
            found.select_nth_unstable_by(count, better);
            found.truncate(count);
        }
        found.sort_unstable_by(better);
        found
            .into_iter()
            .map(|passage| &self.passages[passage])
            .collect()
    }
}
