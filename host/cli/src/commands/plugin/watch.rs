//! `rlf-host plugin watch`: loads a plugin whenever its files are saved, and repeats a call.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use console::style;
use rlf_plugins::manifest::PluginKind;

use super::live::{Live, Loaded};
use super::{call, grade};
use crate::arguments::Trial;

/// Time between two looks at the files.
const EVERY: Duration = Duration::from_millis(200);

/// Shows the plugin, and then again after every change, each time with the result of the trial. Ends with Ctrl-C.
pub(super) fn run(mut live: Live<'_>, trial: &Trial, as_json: bool) -> anyhow::Result<ExitCode> {
    loop {
        if let Some(loaded) = live.loaded()
            && let Err(error) = repeat(loaded, trial, as_json)
        {
            eprintln!("{} {error:#}", style("error:").red().bold().for_stderr());
        }
        eprintln!(
            "{}",
            style("waiting for a change; Ctrl-C ends")
                .dim()
                .for_stderr()
        );
        while !live.refresh() {
            thread::sleep(EVERY);
        }
    }
}

fn repeat(loaded: &Loaded, trial: &Trial, as_json: bool) -> anyhow::Result<()> {
    let Loaded { plugin, tools } = loaded;
    if let Some(tool) = &trial.tool {
        let arguments = call::arguments(&trial.arguments)?;
        call::check_tool(plugin, tool)?;
        call::run(tools, plugin, tool, &arguments, 0, as_json)?;
    }
    if let Some(graded) = trial.graded() {
        grade::run(plugin, tools, &graded, as_json)?;
    } else if plugin.kind() == PluginKind::Reward {
        eprintln!("nothing is graded; give it --reference JSON and --answer TEXT");
    } else if trial.tool.is_none() && !plugin.tools().is_empty() {
        eprintln!("nothing is called; give it the name of a tool, and its arguments as JSON");
    }
    Ok(())
}
