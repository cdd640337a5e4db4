//! BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009).
//!
//! The score of a passage is the sum over the words of the query of
//!
//! ```text
//! idf(w) * f * (k1 + 1) / (f + k1 * (1 - b + b * length / mean length))
//! idf(w) = ln(1 + (N - n + 0.5) / (n + 0.5))
//! ```
//!
//! with f the number of times w occurs in it and n the number of passages, of N, that contain w. The `bm25` crate
//! computes the words and the second factor. Its own scorer iterates over hash maps with random keys, so equal scores
//! come in any order, and it compares every word of every candidate. Here each word has the list of its passages, and
//! ties keep the order of the corpus.

use std::collections::BTreeMap;

use bm25::{Embedder, EmbedderBuilder, Language};

use crate::corpus::Passage;

/// Hashed words, as the `bm25` crate makes them.
type Word = u32;

/// Passages by their words, in a few large arrays. The memory of a call, and the memory that the host checks after
/// it, are counted in pages, so nothing else should be between these arrays.
pub(crate) struct Index {
    embedder: Embedder<Word>,
    /// Titles and texts of all passages, one after the other.
    text: String,
    /// The end of each title and of each text.
    ends: Vec<(u32, u32)>,
    /// All words, sorted.
    words: Vec<Word>,
    /// The end of each word's postings.
    postings_end: Vec<u32>,
    /// For each word, the passages that contain it, in corpus order.
    having: Vec<u32>,
    /// The second factor of the formula for each of them.
    weights: Vec<f32>,
}

/// A passage that was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found<'a> {
    pub(crate) title: &'a str,
    pub(crate) text: &'a str,
}

impl Index {
    pub(crate) fn build(passages: &[Passage], k1: f32, b: f32) -> Self {
        let documents: Vec<String> = passages
            .iter()
            .map(|p| format!("{}\n{}", p.title, p.text))
            .collect();
        let texts: Vec<&str> = documents.iter().map(String::as_str).collect();
        let embedder = EmbedderBuilder::with_fit_to_corpus(Language::English, &texts)
            .k1(k1)
            .b(b)
            .build();
        let mut postings: BTreeMap<Word, Vec<(u32, f32)>> = BTreeMap::new();
        for (number, text) in texts.iter().enumerate() {
            // A word that occurs twice is listed twice, with the same weight.
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
        let (bytes, pairs) = (
            passages.iter().map(|p| p.title.len() + p.text.len()).sum(),
            postings.values().map(Vec::len).sum(),
        );
        let mut index = Self {
            embedder,
            text: String::with_capacity(bytes),
            ends: Vec::with_capacity(passages.len()),
            words: postings.keys().copied().collect(),
            postings_end: Vec::with_capacity(postings.len()),
            having: Vec::with_capacity(pairs),
            weights: Vec::with_capacity(pairs),
        };
        for passage in passages {
            index.text.push_str(&passage.title);
            let title = index.text.len() as u32;
            index.text.push_str(&passage.text);
            index.ends.push((title, index.text.len() as u32));
        }
        for (passage, weight) in postings.values().flatten() {
            index.having.push(*passage);
            index.weights.push(*weight);
        }
        let ends = postings.values().scan(0, |end, list| {
            *end += list.len() as u32;
            Some(*end)
        });
        index.postings_end.extend(ends);
        index
    }

    fn passage(&self, number: usize) -> Found<'_> {
        let start = match number.checked_sub(1) {
            Some(before) => self.ends[before].1,
            None => 0,
        };
        let (title, text) = self.ends[number];
        Found {
            title: &self.text[start as usize..title as usize],
            text: &self.text[title as usize..text as usize],
        }
    }

    /// The passages that contain a word, with the second factor of the formula.
    fn postings(&self, word: Word) -> impl ExactSizeIterator<Item = (u32, f32)> {
        let range = self.words.binary_search(&word).map_or(0..0, |at| {
            let start = at
                .checked_sub(1)
                .map_or(0, |before| self.postings_end[before]);
            start as usize..self.postings_end[at] as usize
        });
        let having = self.having[range.clone()].iter().copied();
        having.zip(self.weights[range].iter().copied())
    }

    /// The best passages, at most `count`, all with a word of the query.
    pub(crate) fn search(&self, query: &str, count: usize) -> Vec<Found<'_>> {
        let mut words: Vec<Word> = self.embedder.embed(query).indices().copied().collect();
        words.sort_unstable();
        words.dedup();
        let mut scores = vec![0.0_f32; self.ends.len()];
        for word in words {
            let having = self.postings(word);
            let (all, having_it) = (self.ends.len() as f32, having.len() as f32);
            let idf = (1.0 + (all - having_it + 0.5) / (having_it + 0.5)).ln();
            for (passage, weight) in having {
                scores[passage as usize] += idf * weight;
            }
        }
        let mut found: Vec<u32> = (0..scores.len() as u32)
            .filter(|passage| scores[*passage as usize] > 0.0)
            .collect();
        let score = |passage: &u32| scores[*passage as usize];
        let better = |a: &u32, b: &u32| score(b).total_cmp(&score(a)).then(a.cmp(b));
        if found.len() > count {
            found.select_nth_unstable_by(count, better);
            found.truncate(count);
        }
        found.sort_unstable_by(better);
        found
            .into_iter()
            .map(|passage| self.passage(passage as usize))
            .collect()
    }
}
