//! `rlf-host serve`: serves programs, tools, rewards and environments over HTTP, or to one MCP client.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use rlf_agents::{PolicyService, PolicyServiceError};
use rlf_environments::environments::Environments;
use rlf_plugins::follower::Follower;
use rlf_plugins::problem::described;
use rlf_plugins::registry::Registry;
use rlf_run::SavedRun;
use rlf_sandbox::Sandbox;
use rlf_serve::{Offer, ServeConfig, ServeConfigError, Server};
use rlf_tools::tool_manager::ToolManager;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::advice::with_options;
use crate::arguments::{self, ServeCommand, ServeHttp, ServeMcp, ServePolicy};
use crate::operator::Operator;
use crate::plugins::sources;
use crate::progress::Progress;
use crate::warning::warn;

/// Exit code of a program ended by Ctrl-C, as in shells.
const INTERRUPTED: i32 = 130;

pub(crate) fn run(options: &arguments::Serve) -> anyhow::Result<ExitCode> {
    match &options.command {
        Some(ServeCommand::Mcp(mcp)) => over_streams(mcp, &options.http.plugins.plugins),
        Some(ServeCommand::Policy(policy)) => policy_of(policy, &options.http.plugins.plugins),
        None => over_http(&options.http),
    }
}

fn over_http(options: &ServeHttp) -> anyhow::Result<ExitCode> {
    let operator = Operator::load(options.config.as_deref())?;
    // Checked before plugins are loaded, because loading takes a while. The file is checked alone first: what is wrong
    // there has a line.
    (operator.serve.validate())
        .map_err(|error| operator.error_at(&format!("serve.{}", error.key()), &error))?;
    let config = configured(operator.serve.clone(), options);
    config
        .validate()
        .and_then(|()| rlf_serve::check_access(&config))
        .map_err(|error| match error {
            ServeConfigError::Unprotected(_) => {
                anyhow!("{error} (--token-file FILE or --token-env NAME)")
            }
            error => anyhow!(error),
        })?;
    let loaded = Loaded::new(&options.plugins.plugins, &operator, &config)?;
    let runtime = runtime()?;
    let stop = asked_to_stop()?;
    let served = runtime.block_on(async {
        let server = Server::bind(config, loaded.offer(&operator)).await?;
        announce(&server);
        for name in operator.servers_left_out(&loaded.tools) {
            say!("  withheld     mcp.{name}: it leads to a server outside of the sandbox (--allow {name})");
        }
        let stopping = |under_way| {
            eprintln!("stopping: {under_way} requests are under way and will be answered; press Ctrl-C again to stop at once");
        };
        anyhow::Ok(server.run(stop.notified(), stopping).await)
    })?;
    say!(
        "served {} requests, {} of them after being asked to stop",
        served.requests,
        served.finished
    );
    Ok(ExitCode::SUCCESS)
}

/// Serves MCP over standard input and output. Standard output is the client's alone.
fn over_streams(options: &ServeMcp, added: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let operator = Operator::load(options.config.as_deref())?;
    (operator.serve.validate())
        .map_err(|error| operator.error_at(&format!("serve.{}", error.key()), &error))?;
    let mut config = operator.serve.clone();
    config.allow.extend(options.allow.iter().cloned());
    let loaded = Loaded::new(added, &operator, &config)?;
    let runtime = runtime()?;
    let stop = asked_to_stop()?;
    let withheld = |name: &str, why: &str| warn(&format!("withheld: {name}: {why} (--allow NAME)"));
    for name in operator.servers_left_out(&loaded.tools) {
        let why = "it leads to a server outside of the sandbox";
        warn(&format!("withheld: mcp.{name}: {why} (--allow {name})"));
    }
    let served = runtime.block_on(async {
        let streams = (tokio::io::stdin(), tokio::io::stdout());
        let offer = loaded.offer(&operator);
        rlf_serve::serve_streams(config, offer, streams, stop.notified(), withheld).await
    });
    // A thread may still wait for input that never comes.
    runtime.shutdown_background();
    served?;
    Ok(ExitCode::SUCCESS)
}

/// Serves the policy of a run.
fn policy_of(options: &ServePolicy, added: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let token = options.token_env.as_deref().map(|name| {
        std::env::var(name).with_context(|| format!("--token-env: the environment variable {name}"))
    });
    let token = token.transpose()?;
    let device = options.device.as_deref();
    let saved = SavedRun::open(&options.run, &sources(added)?, device, &Progress::new())
        .map_err(with_options)?;
    let runtime = runtime()?;
    let stop = asked_to_stop()?;
    runtime.block_on(async {
        let chat = saved.chat()?;
        let service =
            PolicyService::start(options.listen, token, chat).map_err(|error| match error {
                PolicyServiceError::Unprotected(_) => anyhow!("{error} (--token-env NAME)"),
                error => anyhow!(error),
            })?;
        let address = service.address();
        say!("listening on http://{address}");
        say!("  OpenAI       base URL http://{address}/v1");
        say!("  Anthropic    base URL http://{address}");
        say!("  checkpoint   {}", saved.checkpoint.path.display());
        stop.notified().await;
        anyhow::Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The plugins of a service, which are followed on disk as long as this is held.
struct Loaded {
    sandbox: Sandbox,
    registry: Registry,
    tools: ToolManager,
    _follower: Option<Follower>,
}

impl Loaded {
    fn new(added: &[PathBuf], operator: &Operator, config: &ServeConfig) -> anyhow::Result<Self> {
        let sources = sources(added)?;
        let sandbox = sources.sandbox(&operator.sandbox)?;
        let registry = sources.load(&operator.grants_by_name, &sandbox, &Progress::new());
        let is_named = |plugin: &str| operator.grants_by_name.contains_key(plugin);
        for line in described(registry.problems(), is_named) {
            warn(&line);
        }
        let tools = operator
            .tools(&registry, &operator.tools, &config.allow)
            .context("[tools]")?;
        let follower = (operator.tools.reload)
            .then(|| Follower::start(&registry, &sandbox))
            .transpose()
            .context("cannot start a thread that looks after plugins")?;
        Ok(Self {
            sandbox,
            registry,
            tools,
            _follower: follower,
        })
    }

    fn offer(&self, operator: &Operator) -> Offer<'_> {
        Offer {
            registry: &self.registry,
            tools: self.tools.clone(),
            environments: Environments::new(&self.registry, &self.sandbox, &operator.environments),
            workers: self.sandbox.pools().workers,
        }
    }
}

fn runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("rlf-serve")
        .enable_all()
        .build()
        .context("cannot start threads")
}

/// The configuration, overridden by the options of the command line.
fn configured(config: ServeConfig, options: &ServeHttp) -> ServeConfig {
    let mut config = config;
    if let Some(listen) = options.listen {
        config.listen = listen;
    }
    if options.token_file.is_some() || options.token_env.is_some() {
        config.token_file.clone_from(&options.token_file);
        config.token_env.clone_from(&options.token_env);
    }
    config.hosts.extend(options.hosts.iter().cloned());
    config.origins.extend(options.origins.iter().cloned());
    config.allow.extend(options.allow.iter().cloned());
    config
}

/// Prints the address, then the languages, tools, rewards and environments that are served. The address comes first, because a caller
/// that asked for port 0 reads it.
fn announce(server: &Server) {
    say!("listening on http://{}", server.address());
    let programs = ("programs", server.languages());
    for (what, names) in std::iter::once(programs).chain(server.offers()) {
        if !names.is_empty() {
            say!("  {what:<12} {}", names.join(", "));
        }
    }
    for (name, why) in server.withheld() {
        say!("  withheld     {name}: {why} (--allow NAME)");
    }
}

/// Returns a notification that fires at the first Ctrl-C or SIGTERM.
fn asked_to_stop() -> anyhow::Result<Arc<Notify>> {
    let asked = Arc::new(Notify::new());
    let stop = Arc::clone(&asked);
    let mut again = false;
    ctrlc::set_handler(move || {
        if std::mem::replace(&mut again, true) {
            eprintln!("stopped at once");
            rlf_mcp::end_processes();
            std::process::exit(INTERRUPTED);
        }
        // `notify_one` is remembered until somebody waits.
        stop.notify_one();
    })
    .context("Ctrl-C cannot be handled")?;
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::arguments::{Arguments, Command};

    fn options(words: &[&str]) -> ServeHttp {
        let words = ["rlf-host", "serve"].iter().chain(words);
        match Arguments::try_parse_from(words).unwrap().command {
            Command::Serve(options) => options.http,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_typed_stands_above_the_file() {
        let file: ServeConfig = rlf_config::parse(
            "listen = \"127.0.0.1:1\"\ntoken_env = \"A\"\nallow = [\"web\"]\n",
            "c.toml",
        )
        .unwrap();
        let config = configured(
            file.clone(),
            &options(&[
                "--listen",
                "[::1]:2",
                "--token-file",
                "t",
                "--allow",
                "agent",
                "--host",
                "h",
            ]),
        );
        assert_eq!(config.listen.to_string(), "[::1]:2");
        assert_eq!(
            (config.token_file, config.token_env),
            (Some("t".into()), None)
        );
        assert_eq!(config.allow.len(), 2);
        assert!(config.hosts.contains("h"));
        assert_eq!(configured(file.clone(), &options(&[])), file);
    }
}
