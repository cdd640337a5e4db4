//! Tells which tools give the same result when a call is repeated with its seed.

use std::collections::BTreeSet;

use rlf_plugins::manifest::GateName;
use rlf_plugins::plugin::Plugin;

use super::ToolManager;
use crate::tool::{Owner, PluginTool};

impl ToolManager {
    /// True if a call of the tool that stays within its limits gives the same result when it is repeated with its seed.
    ///
    /// False for tools of servers, for tools that say that they are `open-world`, for plugins with the gate `http`,
    /// `real-clock` or `real-random`, and for those that may call such a tool or run such an interpreter. Answers of
    /// models are recorded, so asking one makes no difference.
    pub fn repeats(&self, name: &str) -> bool {
        !self.looks_outside(name, &mut BTreeSet::new())
    }

    /// True if a call that the plugin answers repeats in the same sense, whichever of its exports is called.
    pub fn plugin_repeats(&self, plugin: &Plugin) -> bool {
        !self.plugin_looks_outside(plugin, &mut BTreeSet::new())
    }

    fn looks_outside(&self, name: &str, seen: &mut BTreeSet<String>) -> bool {
        let Some(index) = self.inner.by_name.get(name) else {
            return false;
        };
        let tool = &self.inner.tools[*index];
        let Owner::Plugin(PluginTool { plugin, .. }) = &tool.owner else {
            return true;
        };
        tool.loaded.definition.hints.open_world || self.plugin_looks_outside(plugin, seen)
    }

    fn plugin_looks_outside(&self, plugin: &Plugin, seen: &mut BTreeSet<String>) -> bool {
        if !seen.insert(plugin.name().to_owned()) {
            return false;
        }
        let grants = plugin.grants();
        let mut tools = plugin.open_tools().iter();
        let mut interpreters =
            (grants.execute.iter()).filter_map(|name| self.inner.interpreters.get(name));
        plugin.has_real_sources()
            || grants.gates.contains(&GateName::Http)
            || tools.any(|tool| self.looks_outside(tool, seen))
            || interpreters.any(|interpreter| self.plugin_looks_outside(interpreter, seen))
    }
}
