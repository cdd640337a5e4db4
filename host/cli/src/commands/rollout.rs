//! `rlf-host rollout RUN --task ...`: plays one task and prints the trajectory.

use std::process::ExitCode;

use anyhow::Context;
use rlf_policy::SamplingParams;
use rlf_run::SavedRun;
use rlf_run::tasks::split_from_name;
use serde_json::json;

use crate::advice::with_options;
use crate::arguments::Rollout;
use crate::display;
use crate::interrupt;
use crate::plugins::sources;
use crate::progress::Progress;

pub(crate) fn run(options: &Rollout) -> anyhow::Result<ExitCode> {
    interrupt::exit_with_servers()?;
    let plugins = sources(&options.plugins.plugins)?;
    let saved =
        SavedRun::open(&options.run, &plugins, None, &Progress::new()).map_err(with_options)?;
    let split = split_from_name(&options.split)?;
    let task = saved.parts.tasks.find(split, &options.task)?;
    let params = SamplingParams {
        temperature: options.temperature,
        ..SamplingParams::default()
    };
    // A rollout plays a whole group, so the samples before the wanted one are played too.
    let samples = options.sample as usize + 1;
    let group = super::runtime()?.block_on(saved.rollout(split, task, samples, params))?;
    let trajectory = group
        .trajectories
        .last()
        .context("the rollout returned no trajectory")?;
    let graded = group.scores.last().context("the rollout was not graded")?;
    if options.json {
        let score = graded.as_ref().ok();
        let excluded = graded.as_ref().err().map(|excluded| &excluded.reason);
        let record = json!({"task": *group.task, "trajectory": trajectory, "score": score, "excluded": excluded});
        say!("{}", serde_json::to_string_pretty(&record)?);
    } else {
        display::trajectory(&group.task, trajectory, graded, &saved.parts.tokenizer);
    }
    Ok(ExitCode::SUCCESS)
}
