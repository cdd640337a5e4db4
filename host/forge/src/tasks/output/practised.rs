//! Environments that RL practises in, and that no demonstration shows.

use std::collections::BTreeSet;

use rlf_dialogue::split::Split;
use rlf_random::{Key, Purpose};

use crate::tasks::record::TaskRecord;

/// Environments of training whose tasks are kept apart. A policy that has learned demonstrations by heart solves their
/// environments without reading; in the practised ones it has to read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Practised {
    environments: BTreeSet<String>,
}

impl Practised {
    /// Draws a share of the environments that tasks of training are in. The same tasks and share give the same
    /// environments.
    pub fn draw(tasks: &[TaskRecord], share: f64) -> Self {
        let of_training = tasks.iter().filter(|task| task.split == Split::Train);
        let names: BTreeSet<&String> = of_training.flat_map(|task| task.servers.keys()).collect();
        let mut names: Vec<&String> = names.into_iter().collect();
        let count = (names.len() as f64 * share).round() as usize;
        Key::new(0, Purpose::Order)
            .named("forge practice")
            .shuffle(&mut names);
        Self {
            environments: names.into_iter().take(count).cloned().collect(),
        }
    }

    /// True if the task is one of training and one of its environments was drawn.
    pub fn has(&self, task: &TaskRecord) -> bool {
        task.split == Split::Train
            && task
                .servers
                .keys()
                .any(|name| self.environments.contains(name))
    }
}
