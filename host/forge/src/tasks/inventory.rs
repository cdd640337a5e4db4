//! The inventory of a task: environments that it does not need, and names of its own for tools and parameters.
//!
//! AutoTool (arXiv:2512.13278) trains policies on inventories that change, so that they choose tools they have not seen.
//! Here each task draws its inventory: the tools that its gold calls need, and others of the same environments and of
//! other ones. The other environments are open and can be called. Environments of one split are never offered in another
//! one.

use std::collections::{BTreeMap, BTreeSet};

use rlf_random::Key;

use super::make::{Candidate, Maker, Trajectory};
use super::record::Start;
use super::shown::ShownTools;
use super::text::spaced;
use crate::compose::invented::Inventor;
use crate::sampling::Draws;

/// The environments of a task: those that its calls need, and up to as many others as the options say.
pub(super) fn servers(
    maker: &Maker<'_>,
    candidate: &Candidate,
    trajectory: &Trajectory,
) -> BTreeMap<String, Start> {
    let mut servers = trajectory.servers.clone();
    let most = maker.options.inventory.other_environments;
    let Some(first) = servers.keys().next().filter(|_| most > 0) else {
        return servers;
    };
    let split = maker.splits.environment(first);
    let key = candidate.key(maker.options.seed, "other environments");
    let mut draws = Draws::new(key);
    let all = maker.suite.environments().iter();
    let others = all
        .filter(|other| !servers.contains_key(&other.name))
        .filter(|other| maker.splits.environment(&other.name) == split);
    let count = draws.index(most + 1);
    for other in draws.several(others.collect(), count) {
        let wanted = &maker.options.scenarios;
        let allowed = |name: &&String| wanted.is_empty() || wanted.contains(name);
        // Scenarios begin with the smallest one.
        if let Some(scenario) = other.scenarios.iter().find(allowed) {
            let start = Start {
                scenario: scenario.clone(),
                seed: key.named(&other.name).value() >> 12,
            };
            servers.insert(other.name.clone(), start);
        }
    }
    servers
}

/// Draws the names under which a task shows its tools and their parameters.
pub(super) fn shown(maker: &Maker<'_>, candidate: &Candidate, tools: &[String]) -> ShownTools {
    let options = &maker.options.inventory;
    let mut shown = ShownTools {
        rename: if options.bare_names {
            bare_names(tools)
        } else {
            BTreeMap::new()
        },
        permute_parameters: options.permute_parameters,
        ..ShownTools::default()
    };
    if options.rename_tools == 0.0 && options.rename_parameters == 0.0 {
        return shown;
    }
    let key = candidate.key(maker.options.seed, "shown names");
    let mut namer = Namer::new(maker, tools, key);
    let mut draws = Draws::new(key.named("chances"));
    for tool in tools {
        if draws.chance(options.rename_tools) {
            shown.rename.insert(tool.clone(), namer.name(bare(tool)));
        }
        let mut names = BTreeMap::new();
        for input in maker
            .suite
            .tool(tool)
            .into_iter()
            .flat_map(|tool| &tool.inputs)
        {
            let parameter = &input.name;
            if draws.chance(options.rename_parameters) && is_described(maker, tool, parameter) {
                names.insert(parameter.clone(), namer.name(parameter));
            }
        }
        if !names.is_empty() {
            shown.rename_parameters.insert(tool.clone(), names);
        }
    }
    shown
}

/// The name of a tool without its environment.
fn bare(tool: &str) -> &str {
    tool.split_once('-')
        .map_or(tool, |(_, operation)| operation)
}

/// The bare names of tools, except of those that would have the same one.
fn bare_names(tools: &[String]) -> BTreeMap<String, String> {
    tools
        .iter()
        .filter(|tool| {
            tools
                .iter()
                .filter(|other| bare(other) == bare(tool))
                .count()
                == 1
        })
        .map(|tool| (tool.clone(), bare(tool).to_owned()))
        .collect()
}

/// True if the description of a parameter says what the parameter's name says, so that the name can be replaced.
fn is_described(maker: &Maker<'_>, tool: &str, parameter: &str) -> bool {
    let schema = maker.suite.parameter(tool, parameter);
    let description = schema["description"].as_str().unwrap_or_default();
    let said: BTreeSet<String> = spaced(description)
        .split(|letter: char| !letter.is_alphanumeric())
        .map(str::to_owned)
        .collect();
    let name = spaced(parameter);
    let mut words = name.split(' ').filter(|word| *word != "id").peekable();
    words.peek().is_some() && words.all(|word| said.contains(word))
}

/// Invents names that nothing in the inventory has.
struct Namer {
    inventor: Inventor,
    taken: BTreeSet<String>,
}

impl Namer {
    fn new(maker: &Maker<'_>, tools: &[String], key: Key) -> Self {
        let inputs = tools
            .iter()
            .filter_map(|tool| maker.suite.tool(tool))
            .flat_map(|tool| &tool.inputs)
            .map(|input| input.name.clone());
        Self {
            inventor: Inventor::new(key.named("words")),
            taken: inputs.chain(tools.iter().cloned()).collect(),
        }
    }

    /// Invents a name of as many words as another one.
    fn name(&mut self, own: &str) -> String {
        let words = own.split('_').count().min(3);
        loop {
            let invented: Vec<String> = (0..words).map(|_| self.inventor.word(2)).collect();
            let name = invented.join("_");
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}
