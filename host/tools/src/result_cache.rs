//! Results of deterministic tools, kept so that the same call does not run twice.
//!
//! The key is the tool's index in its manager, the identity of its plugin (component, config and data) and the
//! canonical arguments. Only `ok` results are kept. The cache is bounded in bytes, and drops the least recently used
//! results first, by generation: a full generation becomes the old one, and results that are found there move to the
//! young one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use rlf_dialogue::message::Content;
use rlf_dialogue::tool::Observation;

/// Approximate cost of an entry besides its texts: map slots, headers, counters.
const OVERHEAD_BYTES: usize = 200;

#[derive(Debug)]
pub(crate) struct ResultCache {
    /// Maximum size of one generation, in bytes. Two generations are kept.
    generation_bytes: usize,
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<(usize, String), Observation>,
    young_bytes: usize,
    old: HashMap<(usize, String), Observation>,
}

impl ResultCache {
    /// Creates a cache of about this many bytes at most.
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            generation_bytes: bytes / 2,
            generations: Mutex::default(),
        }
    }

    pub(crate) fn get(&self, tool: usize, plugin: &str, arguments: &str) -> Option<Observation> {
        let mut generations = self
            .generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let key = (tool, key(plugin, arguments));
        if let Some(found) = generations.young.get(&key) {
            return Some(found.clone());
        }
        let found = generations.old.remove(&key)?;
        self.insert_young(&mut generations, key, found.clone());
        Some(found)
    }

    pub(crate) fn insert(
        &self,
        tool: usize,
        plugin: &str,
        arguments: &str,
        observation: &Observation,
    ) {
        let mut generations = self
            .generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let key = (tool, key(plugin, arguments));
        self.insert_young(&mut generations, key, observation.clone());
    }

    fn insert_young(
        &self,
        generations: &mut Generations,
        key: (usize, String),
        observation: Observation,
    ) {
        let bytes = OVERHEAD_BYTES + key.1.len() + size(&observation);
        if bytes > self.generation_bytes {
            return;
        }
        if generations.young_bytes + bytes > self.generation_bytes {
            generations.old = std::mem::take(&mut generations.young);
            generations.young_bytes = 0;
        }
        if generations.young.insert(key, observation).is_none() {
            generations.young_bytes += bytes;
        }
    }
}

fn key(plugin: &str, arguments: &str) -> String {
    format!("{plugin} {arguments}")
}

fn size(observation: &Observation) -> usize {
    let content = observation.content.iter().map(|part| match part {
        Content::Text(text) => text.len(),
        // Estimated from the length as JSON; in memory a value takes a few times that.
        Content::Structured(value) => 4 * value.to_string().len(),
        Content::Image(blob) | Content::Audio(blob) | Content::File(blob) => blob.data.len(),
    });
    let named = observation
        .metrics
        .iter()
        .map(|metric| metric.name.len() + 8);
    let extra = observation
        .extra
        .iter()
        .map(|(name, value)| name.len() + value.to_string().len());
    content.chain(named).chain(extra).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(n: usize) -> Observation {
        Observation::text("x".repeat(n), false)
    }

    #[test]
    fn a_result_is_found_by_tool_and_arguments() {
        let cache = ResultCache::new(1 << 20);
        cache.insert(0, "c", "{\"a\":1}", &text(3));
        assert_eq!(cache.get(0, "c", "{\"a\":1}"), Some(text(3)));
        assert_eq!(cache.get(1, "c", "{\"a\":1}"), None);
        assert_eq!(cache.get(0, "another", "{\"a\":1}"), None);
        assert_eq!(cache.get(0, "c", "{\"a\":2}"), None);
    }

    #[test]
    fn the_cache_stays_in_its_bounds_and_keeps_what_is_used() {
        let cache = ResultCache::new(20_000);
        cache.insert(0, "c", "used", &text(800));
        for n in 0..100 {
            cache.insert(0, "c", &format!("{n}"), &text(800));
            assert!(cache.get(0, "c", "used").is_some(), "after {n}");
        }
        assert!(cache.get(0, "c", "0").is_none());
        assert!(cache.get(0, "c", "99").is_some());
        let generations = cache.generations.lock().unwrap();
        assert!(generations.young.len() + generations.old.len() <= 20);
    }

    #[test]
    fn what_would_fill_the_cache_alone_is_not_kept() {
        let cache = ResultCache::new(2_000);
        cache.insert(0, "c", "big", &text(1_500));
        assert_eq!(cache.get(0, "c", "big"), None);
    }
}
