//! `rlf-host plugin try`: calls tools or grades answers by hand, one command a line.

use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use console::style;
use rlf_plugins::manifest::PluginKind;

use super::live::{Live, Loaded, list};
use super::{call, grade};
use crate::commands::lines::CommandLines;

const HELP: &str = "\
list                 list the tools
NAME {ARGUMENTS}     call a tool with a JSON object of arguments; `call NAME {..}` if a command has the same name
seed NUMBER          set the seed of the calls that follow
reference JSON       set the reference that answers are graded by, as JSON or plain text
answer TEXT          grade an answer
quit                 leave";

/// The settings that commands have changed.
#[derive(Default)]
struct Settings {
    seed: u64,
    reference: Option<String>,
}

/// Reads commands until the input ends. The plugin is loaded anew before a command if its files have changed.
pub(super) fn run(mut live: Live<'_>, as_json: bool) -> anyhow::Result<ExitCode> {
    let mut lines = CommandLines::from_stdin();
    if lines.is_interactive() {
        say!("{}", style(HELP).dim());
    }
    let mut settings = Settings::default();
    while let Some(line) = lines.next()? {
        live.refresh();
        match command(live.loaded(), &line, &mut settings, as_json) {
            Ok(code) if code == ExitCode::SUCCESS => {}
            Ok(_) => lines.note_failure(),
            Err(error) => lines.show_error(error),
        }
    }
    Ok(lines.exit_code())
}

fn command(
    loaded: Option<&Loaded>,
    line: &str,
    settings: &mut Settings,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let loaded = || loaded.context("the plugin does not load; mend it first");
    let call = |name: &str, arguments: &str| {
        let Loaded { plugin, tools } = loaded()?;
        call::check_tool(plugin, name)?;
        let arguments = call::arguments(if arguments.is_empty() {
            "{}"
        } else {
            arguments
        })?;
        call::run(tools, plugin, name, &arguments, settings.seed, as_json)
    };
    match command {
        "help" => say!("{HELP}"),
        "list" => {
            let plugin = &loaded()?.plugin;
            if plugin.tools().is_empty() {
                let kind = plugin.kind().with_article();
                say!("{} is {kind} and has no tools", plugin.name());
            }
            list(plugin);
        }
        "call" => {
            let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            return call(name, arguments.trim());
        }
        "seed" => {
            settings.seed = rest.parse().context("write a whole number: seed 7")?;
        }
        "reference" => {
            ensure!(!rest.is_empty(), "write the reference: reference \"Paris\"");
            settings.reference = Some(rest.to_owned());
        }
        "answer" => {
            let Loaded { plugin, tools } = loaded()?;
            ensure!(
                plugin.kind() == PluginKind::Reward,
                "`{}` is {} and grades nothing; `list` shows what it has",
                plugin.name(),
                plugin.kind().with_article()
            );
            let Some(reference) = &settings.reference else {
                bail!("set what the answer is graded by first: reference \"Paris\"");
            };
            let graded = grade::Graded {
                answer: Some(rest),
                reference,
                trajectory: None,
            };
            return grade::run(plugin, tools, &graded, as_json);
        }
        name => {
            let plugin = &loaded()?.plugin;
            ensure!(
                !plugin.tools().is_empty(),
                "there is no command `{name}`; `{}` is {} and has no tools; `help` lists the commands",
                plugin.name(),
                plugin.kind().with_article()
            );
            return call(name, rest);
        }
    }
    Ok(ExitCode::SUCCESS)
}
