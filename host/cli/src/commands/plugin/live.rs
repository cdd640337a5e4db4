//! A plugin that is loaded anew when its files have changed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use console::style;
use rlf_plugins::files::{FileStamps, PluginFiles};
use rlf_plugins::plugin::Plugin;
use rlf_tools::tool_manager::{ToolManager, ToolManagerConfig};

use super::Found;
use crate::commands::signature::signature;
use crate::display::printable;
use crate::operator::Operator;

/// Time without a change after which a file counts as saved whole.
const SETTLE: Duration = Duration::from_millis(50);
/// Number of times that a file may still change.
const LOOKS: usize = 20;

/// A plugin with the tools that it may call.
pub(super) struct Loaded {
    pub(super) plugin: Arc<Plugin>,
    pub(super) tools: ToolManager,
}

/// The plugin as its files were when they were last looked at.
pub(super) struct Live<'a> {
    find: &'a dyn Fn() -> anyhow::Result<Found>,
    operator: &'a Operator,
    files: PluginFiles,
    stamps: FileStamps,
    /// True if only the results of calls are for standard output.
    as_json: bool,
    /// `None` if it did not load.
    loaded: Option<Loaded>,
}

impl<'a> Live<'a> {
    /// Loads the plugin and shows it. A plugin that does not load is shown with its problem, and is loaded again once
    /// its files change. Fails if there is no such plugin.
    pub(super) fn load(
        find: &'a dyn Fn() -> anyhow::Result<Found>,
        operator: &'a Operator,
        files: PluginFiles,
        as_json: bool,
    ) -> anyhow::Result<Self> {
        let mut live = Self {
            find,
            operator,
            stamps: files.stamps(),
            files,
            as_json,
            loaded: None,
        };
        live.reload()?;
        Ok(live)
    }

    pub(super) fn loaded(&self) -> Option<&Loaded> {
        self.loaded.as_ref()
    }

    /// Loads the plugin anew if its files have changed, and shows it. Returns true if it did.
    pub(super) fn refresh(&mut self) -> bool {
        if self.files.stamps() == self.stamps || !self.files.are_there() {
            return false;
        }
        self.stamps = self.settled();
        if let Err(error) = self.reload() {
            self.loaded = None;
            self.show_refusal(&format!("{error:#}"));
        }
        true
    }

    /// The files once nobody writes to them any more, or after a while.
    fn settled(&self) -> FileStamps {
        let mut stamps = self.files.stamps();
        for _ in 0..LOOKS {
            thread::sleep(SETTLE);
            let later = self.files.stamps();
            if later == stamps {
                break;
            }
            stamps = later;
        }
        stamps
    }

    fn reload(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        self.loaded = None;
        match (self.find)()? {
            Ok((registry, plugin)) => {
                let config = ToolManagerConfig::default();
                let tools = self.operator.tools(&registry, &config, &BTreeSet::new())?;
                if !self.as_json {
                    show(&plugin, began.elapsed());
                }
                self.loaded = Some(Loaded { plugin, tools });
            }
            Err(problem) => self.show_refusal(&problem.to_string()),
        }
        Ok(())
    }

    fn show_refusal(&self, why: &str) {
        if self.as_json {
            eprintln!("{} {why}", style("refused:").red().bold().for_stderr());
        } else {
            say!("{} {why}", style("refused:").red().bold());
        }
    }
}

fn show(plugin: &Plugin, took: Duration) {
    say!(
        "{}, {}, ready in {:.1} s",
        style(plugin.name()).cyan(),
        plugin.kind().with_article(),
        took.as_secs_f64()
    );
    list(plugin);
}

/// Lists the tools.
pub(super) fn list(plugin: &Plugin) {
    for tool in plugin.tools() {
        let tool = &tool.definition;
        let description = tool.description.lines().next().unwrap_or_default();
        say!(
            "  {}  {}",
            printable(&signature(&tool.name, &tool.input_schema)),
            style(printable(description)).dim()
        );
    }
}
