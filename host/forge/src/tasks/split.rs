//! Environments and tools that are held out of training.
//!
//! Environments are assigned to train, validation and test. In the environments of training, some operations that change
//! something are held out as well: no task of training calls or offers them. Operations of one name are held out together
//! in all environments.

use std::collections::{BTreeMap, BTreeSet};

use rlf_dialogue::split::Split;
use rlf_random::{Key, Purpose};

use super::options::TaskOptions;
use super::record::Unseen;
use super::suite::Suite;

/// The assignment of environments and tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splits {
    environments: BTreeMap<String, Split>,
    /// Held-out operations, by their names without environments.
    operations: BTreeMap<String, Split>,
}

impl Splits {
    /// Assigns all environments and tools of a suite, from the options' seed.
    pub fn new(suite: &Suite, options: &TaskOptions) -> Self {
        let key = Key::new(options.seed, Purpose::Order).named("forge splits");
        let mut names: Vec<&str> = suite
            .environments()
            .iter()
            .map(|environment| environment.name.as_str())
            .collect();
        let held = held_out(names.len(), options.held_out_environments);
        key.named("environments").shuffle(&mut names);
        let environments: BTreeMap<String, Split> = names
            .iter()
            .enumerate()
            .map(|(place, name)| ((*name).to_owned(), assigned(place, held)))
            .collect();

        let seen = suite
            .environments()
            .iter()
            .filter(|environment| environments.get(&environment.name) == Some(&Split::Train));
        let operations: BTreeSet<&str> = seen
            .flat_map(|environment| environment.definitions.iter().zip(&environment.tools))
            .filter(|(definition, _)| !suite.is_read_only(&definition.name))
            .map(|(_, tool)| tool.name.as_str())
            .collect();
        let mut operations: Vec<&str> = operations.into_iter().collect();
        let held = held_out(operations.len(), options.held_out_tools / 2.0);
        key.named("operations").shuffle(&mut operations);
        let operations = operations
            .iter()
            .take(2 * held)
            .enumerate()
            .map(|(place, name)| ((*name).to_owned(), assigned(place, held)))
            .collect();
        Self {
            environments,
            operations,
        }
    }

    /// The split of an environment.
    pub fn environment(&self, name: &str) -> Split {
        self.environments.get(name).copied().unwrap_or(Split::Train)
    }

    /// The split for which a tool, `Server-name`, is held out. None if training may use it.
    pub fn held_out_tool(&self, full_name: &str) -> Option<Split> {
        let (server, operation) = full_name.split_once('-')?;
        if self.environment(server) == Split::Train {
            self.operations.get(operation).copied()
        } else {
            None
        }
    }

    /// The split of a task that calls these tools, and what about it is unseen. Its environments are of one split.
    pub fn judge<'a>(&self, tools: impl IntoIterator<Item = &'a str>) -> (Split, Unseen) {
        let mut judged = (Split::Train, Unseen::Nothing);
        for tool in tools {
            let server = tool.split_once('-').map_or(tool, |(server, _)| server);
            let environment = self.environment(server);
            if environment != Split::Train {
                return (environment, Unseen::Environment);
            }
            if let Some(split) = self.held_out_tool(tool) {
                judged = (judged.0.max(split), Unseen::Tool);
            }
        }
        judged
    }

    /// Number of environments of each split, and of operations held out for validation and test.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for split in self.environments.values() {
            *counts.entry(split.as_str()).or_default() += 1;
        }
        counts.insert("held-out operations", self.operations.len());
        counts
    }
}

/// Number of things that are held out for each of validation and test: at least one if there are three.
fn held_out(count: usize, share: f64) -> usize {
    if share <= 0.0 || count < 3 {
        return 0;
    }
    ((count as f64 * share).round() as usize).clamp(1, (count - 1) / 2)
}

/// The split of the thing at this place: the first `held` are for the test split, the next for validation, and the rest
/// for training.
fn assigned(place: usize, held: usize) -> Split {
    if place < held {
        Split::Test
    } else if place < 2 * held {
        Split::Validation
    } else {
        Split::Train
    }
}
