//! The names under which a model sees the tools of a task.

use std::collections::BTreeMap;

use super::Naming;
use crate::tasks::record::TaskRecord;

/// The tools that are shown under another name than their own: `find_books` for `Library-find_books`.
#[derive(Debug, Default)]
pub(super) struct ShownNames<'a> {
    bare: BTreeMap<&'a str, &'a str>,
}

impl<'a> ShownNames<'a> {
    /// The names for a task. With [`Naming::bare_names`], a tool loses the name of its environment, unless another tool of
    /// the task would then have the same name.
    pub(super) fn new(task: &'a TaskRecord, naming: &Naming) -> Self {
        if !naming.bare_names {
            return Self::default();
        }
        let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for tool in &task.tools {
            let bare = tool.split_once('-').map_or(tool.as_str(), |(_, bare)| bare);
            owners.entry(bare).or_default().push(tool);
        }
        let bare = owners.into_iter().filter_map(|(bare, owners)| {
            let [owner] = owners[..] else { return None };
            (owner != bare).then_some((owner, bare))
        });
        Self {
            bare: bare.collect(),
        }
    }

    /// The shown name of a tool.
    pub(super) fn shown<'n>(&self, tool: &'n str) -> &'n str
    where
        'a: 'n,
    {
        self.bare.get(tool).copied().unwrap_or(tool)
    }

    /// The tools that are shown under another name, with that name.
    pub(super) fn renamed(&self) -> &BTreeMap<&'a str, &'a str> {
        &self.bare
    }
}
