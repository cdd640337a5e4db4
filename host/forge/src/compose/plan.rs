//! Draws which archetypes and options an environment has.

use rlf_random::Key;

use super::TOOLS;
use super::archetype::{Archetype, Flags, archetypes};
use super::business::Business;

/// The archetypes and options of an environment.
#[derive(Debug)]
pub(super) struct Plan {
    /// In an order in which roles are made before they are used.
    pub(super) archetypes: Vec<&'static Archetype>,
    pub(super) flags: Flags,
}

impl Plan {
    /// Draws a number of tools, then adds archetypes and options as long as they fit.
    pub(super) fn draw(business: &Business, key: Key) -> Self {
        let mut chosen: Vec<&str> = business.core.iter().map(String::as_str).collect();
        let least = *TOOLS.start() as u64;
        let half = (*TOOLS.end() as u64 - least) / 2;
        let drawn = least + key.below(0, half + 1) + key.below(1, half + 1);
        let target = (drawn as usize).max(Self::from_names(&chosen).tools());

        let mut more: Vec<&str> = business.more.iter().map(String::as_str).collect();
        key.named("more").shuffle(&mut more);
        for (index, name) in more.into_iter().enumerate() {
            chosen.push(name);
            let plan = Self::from_names(&chosen);
            // Some room stays for options.
            let fits = plan.tools() <= target.saturating_sub(1) && plan.has_needs();
            if !fits || key.named("more").uniform(100 + index as u64) < 0.3 {
                chosen.pop();
            }
        }

        let mut plan = Self::from_names(&chosen);
        let mut options: Vec<(&str, &str)> = Vec::new();
        for archetype in &plan.archetypes {
            options.extend(
                archetype
                    .options
                    .iter()
                    .map(|option| (archetype.name.as_str(), option.as_str())),
            );
        }
        key.named("options").shuffle(&mut options);
        let mut tools = plan.tools();
        for (index, (archetype, option)) in options.into_iter().enumerate() {
            let flag = format!("{archetype}.{option}");
            if plan.flags.0.contains(&flag) {
                continue;
            }
            plan.flags.0.insert(flag.clone());
            let with = plan.tools();
            let wanted = with > tools || key.named("options").uniform(100 + index as u64) < 0.5;
            if with <= target && wanted {
                tools = with;
            } else {
                plan.flags.0.remove(&flag);
            }
        }
        plan
    }

    /// The archetypes of these names, and the options that they cannot do without.
    fn from_names(names: &[&str]) -> Self {
        let found = archetypes()
            .iter()
            .filter(|archetype| names.contains(&archetype.name.as_str()));
        let archetypes: Vec<_> = found.collect();
        let mut flags = Flags::default();
        for archetype in &archetypes {
            flags.0.insert(archetype.name.clone());
            flags.0.extend(archetype.requires.iter().cloned());
        }
        Self { archetypes, flags }
    }

    fn tools(&self) -> usize {
        let operations = self.archetypes.iter().flat_map(|archetype| {
            archetype
                .operations
                .iter()
                .map(move |operation| (archetype, operation))
        });
        operations
            .filter(|(archetype, operation)| self.flags.hold(&archetype.name, &operation.condition))
            .count()
    }

    fn has_needs(&self) -> bool {
        let makes = |role: &String| {
            self.archetypes
                .iter()
                .any(|archetype| archetype.nouns.contains_key(role))
        };
        self.archetypes
            .iter()
            .flat_map(|archetype| &archetype.needs)
            .all(makes)
    }
}
