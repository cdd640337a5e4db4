//! Decides which tools, rewards and environments are served. Every client can use all of their abilities. So a plugin that leads out
//! of the sandbox is served only if the operator names it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rlf_plugins::grants::PluginGrants;
use rlf_plugins::manifest::GateName;
use rlf_plugins::plugin::Plugin;
use rlf_plugins::problem::Problem;
use rlf_plugins::registry::Registry;
use rlf_tools::ToolServer;

use crate::config::ServeConfig;
use crate::error::ServeError;

/// The tools, rewards and environments that are served, and the reasons why the others are not.
#[derive(Debug, Default)]
pub(crate) struct Exposure {
    /// Tools, by the names that models see.
    pub(crate) tools: BTreeSet<String>,
    /// Reward plugins.
    pub(crate) rewards: BTreeMap<String, Arc<Plugin>>,
    /// Environments.
    pub(crate) environments: BTreeMap<String, Arc<Plugin>>,
    /// Tools, rewards and environments that are loaded but not served, with the place that they lead to.
    pub(crate) withheld: BTreeMap<String, String>,
    /// Plugins that are installed but were not loaded, and tools that several plugins offer, with the kind of problem.
    /// The full reason contains paths of this machine, so only the operator reads it.
    pub(crate) failed: BTreeMap<String, String>,
}

impl Exposure {
    /// Decides for the plugins of a registry, and for servers outside of the sandbox, whose tools are served only if the
    /// operator names the server.
    pub(crate) fn new(
        registry: &Registry,
        servers: &[Arc<dyn ToolServer>],
        config: &ServeConfig,
    ) -> Result<Self, ServeError> {
        let plugins = || registry.plugins().iter();
        for name in &config.allow {
            let is_server = servers.iter().any(|server| server.name() == name);
            if registry.plugin(name).is_none() && !is_server {
                let names = plugins().map(|plugin| plugin.name());
                let servers = servers.iter().map(|server| server.name());
                let names: Vec<&str> = names.chain(servers).collect();
                let hint = match rlf_config::nearest(name, names.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are: {}", names.join(", ")),
                };
                return Err(ServeError::NotLoaded {
                    plugin: name.clone(),
                    hint,
                });
            }
        }
        let grants_by_name: BTreeMap<&str, &PluginGrants> = plugins()
            .map(|plugin| (plugin.name(), plugin.grants()))
            .collect();
        let of_plugins = plugins().flat_map(|plugin| {
            plugin
                .tools()
                .iter()
                .map(|tool| (tool, Some(plugin.name())))
        });
        let of_servers =
            (servers.iter()).flat_map(|server| server.tools().iter().map(|tool| (tool, None)));
        let owners: BTreeMap<&str, Option<&str>> = of_plugins
            .chain(of_servers)
            .map(|(tool, owner)| (tool.definition.name.as_str(), owner))
            .collect();
        let mut exposure = Self {
            failed: failed(registry.problems().iter().filter(|problem| {
                // Problems with single tools are reported for those tools.
                registry.plugin(problem.label()).is_none()
            })),
            ..Self::default()
        };
        (exposure.failed).extend(registry.refused_tools().clone());
        for plugin in registry.plugins() {
            let reach = reach(
                plugin.name(),
                &grants_by_name,
                &owners,
                &mut BTreeSet::new(),
            );
            let withheld = reach.filter(|_| !config.allow.contains(plugin.name())).map(|reach| {
                format!(
                    "it leads to {reach}; to serve it all the same, name its plugin `{}` in serve.allow",
                    plugin.name()
                )
            });
            let mut offer = |name: &str| match &withheld {
                Some(why) => {
                    exposure.withheld.insert(name.to_owned(), why.clone());
                    false
                }
                None => true,
            };
            for tool in plugin.tools() {
                if offer(&tool.definition.name) {
                    exposure.tools.insert(tool.definition.name.clone());
                }
            }
            if plugin.is_environment() && offer(plugin.name()) {
                exposure
                    .environments
                    .insert(plugin.name().to_owned(), Arc::clone(plugin));
            }
            if plugin.kind() == rlf_plugins::manifest::PluginKind::Reward && offer(plugin.name()) {
                exposure
                    .rewards
                    .insert(plugin.name().to_owned(), Arc::clone(plugin));
            }
        }
        for server in servers {
            for tool in server.tools() {
                let name = tool.definition.name.clone();
                if config.allow.contains(server.name()) {
                    exposure.tools.insert(name);
                } else {
                    let why = format!(
                        "it is a tool of a server outside of the sandbox; to serve it all the same, name the server `{}` in serve.allow",
                        server.name()
                    );
                    exposure.withheld.insert(name, why);
                }
            }
        }
        Ok(exposure)
    }
}

/// The part of each problem that clients may read, by [`Problem::label`].
fn failed<'a>(problems: impl Iterator<Item = &'a Problem>) -> BTreeMap<String, String> {
    let shown = problems.map(|problem| {
        let subject = match &problem.plugin {
            None => "the plugin directory cannot be read".to_owned(),
            Some(_) => format!("it was not loaded: {}", problem.kind.outline()),
        };
        let why = format!("{subject}; the log of the service says what to mend");
        (problem.label().to_owned(), why)
    });
    shown.collect()
}

/// The place outside the sandbox that a plugin reaches, by itself or by the tools that it may call. `owners` has the plugin
/// of each tool, and none for the tools of servers.
fn reach(
    name: &str,
    grants_by_name: &BTreeMap<&str, &PluginGrants>,
    owners: &BTreeMap<&str, Option<&str>>,
    seen: &mut BTreeSet<String>,
) -> Option<String> {
    if !seen.insert(name.to_owned()) {
        return None;
    }
    let grants = grants_by_name.get(name)?;
    if grants.gates.contains(&GateName::Http) || grants.http.is_some() {
        return Some("a network".into());
    }
    if grants.gates.contains(&GateName::Model) {
        return Some("a model".into());
    }
    if grants.unsandboxed_host_directory.is_some() {
        return Some("a directory of the host".into());
    }
    let called = grants
        .tools
        .iter()
        .filter(|_| grants.gates.contains(&GateName::Tools));
    called
        .chain(&grants.programs.tools)
        .filter_map(|tool| owners.get(tool.as_str()))
        .find_map(|owner| match owner {
            Some(plugin) => reach(plugin, grants_by_name, owners, seen),
            None => Some("a server outside of the sandbox".to_owned()),
        })
        .map(|what| format!("{what} by the tools that it may call"))
}

#[cfg(test)]
mod tests {
    use rlf_plugins::problem::ProblemKind;

    use super::*;

    fn reaches(grants_by_name: &str, name: &str) -> Option<String> {
        let grants_by_name: BTreeMap<String, PluginGrants> =
            rlf_config::parse(grants_by_name, "c.toml").unwrap();
        let grants_by_name = grants_by_name
            .iter()
            .map(|(name, grants)| (name.as_str(), grants))
            .collect();
        let owners = [("fetch", "web"), ("ask", "agent"), ("sum", "calculator")];
        let mut owners: BTreeMap<&str, Option<&str>> =
            owners.map(|(tool, plugin)| (tool, Some(plugin))).into();
        owners.insert("remote", None);
        reach(name, &grants_by_name, &owners, &mut BTreeSet::new())
    }

    #[test]
    fn networks_models_and_directories_lead_out_and_nothing_else() {
        assert_eq!(
            reaches("[web]\ngrants = [\"http\"]", "web").as_deref(),
            Some("a network")
        );
        assert_eq!(
            reaches("[web]\nhttp = {}", "web").as_deref(),
            Some("a network")
        );
        assert_eq!(
            reaches("[x]\ngrants = [\"model\"]", "x").as_deref(),
            Some("a model")
        );
        assert_eq!(
            reaches("[x]\nunsandboxed_host_directory = \"out\"", "x").as_deref(),
            Some("a directory of the host")
        );
        for harmless in [
            "[x]",
            "[x]\ngrants = [\"execute\", \"real-clock\", \"real-random\"]\ndata.a = \"b\"\nfiles = {}",
        ] {
            assert_eq!(reaches(harmless, "x"), None, "{harmless}");
        }
    }

    #[test]
    fn what_clients_are_told_of_a_problem_has_nothing_of_the_machine() {
        let problem = Problem {
            plugin: Some("judge".into()),
            path: "/srv/secret/judge".into(),
            kind: ProblemKind::Data,
            what: "/srv/secret/gold.json cannot be opened".into(),
            mend: "correct data.gold".into(),
        };
        let told = failed([&problem].into_iter());
        assert_eq!(
            told["judge"],
            "it was not loaded: data that it needs is not there; the log of the service says what to mend"
        );
    }

    #[test]
    fn what_a_tool_may_call_counts_as_its_own_reach() {
        let both = "[agent]\ngrants = [\"tools\"]\ntools = [\"sum\", \"ask\", \"fetch\"]\n[web]\ngrants = [\"http\"]\n[calculator]\n";
        assert_eq!(
            reaches(both, "agent").as_deref(),
            Some("a network by the tools that it may call")
        );
        let remote = "[agent]\ngrants = [\"tools\"]\ntools = [\"remote\"]\n";
        assert_eq!(
            reaches(remote, "agent").as_deref(),
            Some("a server outside of the sandbox by the tools that it may call")
        );
        let programs = "[python]\nprograms.tools = [\"fetch\"]\n[web]\nhttp = {}\n";
        assert_eq!(
            reaches(programs, "python").as_deref(),
            Some("a network by the tools that it may call")
        );
        let around = "[agent]\ngrants = [\"tools\"]\ntools = [\"ask\", \"sum\"]\n[calculator]\n";
        assert_eq!(reaches(around, "agent"), None);
        // The plugin is named, but has no grant.
        assert_eq!(
            reaches("[agent]\ntools = [\"fetch\"]\n[web]\nhttp = {}", "agent"),
            None
        );
    }
}
