//! `rlf-host rollout RUN --task ...`.

use std::process::ExitCode;

use anyhow::Context;
use rlf_policy::{Purpose, SamplingParams, open_device};
use rlf_rollout::rollout::rollout;
use serde_json::json;

use crate::arguments::Rollout;
use crate::assemble::Parts;
use crate::{display, tasks};

pub(crate) fn run(options: &Rollout) -> anyhow::Result<ExitCode> {
    let (parts, checkpoint) = Parts::of_run(&options.run, &options.plugins.plugins, None)?;
    let device = open_device(&parts.config.device)?.device;
    let model = parts.load_model(&checkpoint.path, &device)?;
    let split = tasks::split(&options.split)?;
    let task = parts.tasks.find(split, &options.task)?;
    let params = SamplingParams {
        temperature: options.temperature,
        ..SamplingParams::default()
    };
    let settings = parts.settings(params, Purpose::Evaluation, split, checkpoint.state.step)?;
    let groups = super::runtime()?.block_on(async {
        let (workshop, _engine) = parts.workshop(&model)?;
        // The samples of a task are keyed by their number: to draw one, those before it are too.
        let samples = options.sample as usize + 1;
        anyhow::Ok(rollout(&workshop, &[task], samples, &settings).await?)
    })?;
    let group = groups.first().context("the rollout gave nothing back")?;
    let trajectory = group
        .trajectories
        .last()
        .context("the rollout gave no trajectory back")?;
    let graded = group.scores.last().context("the rollout was not graded")?;
    if options.json {
        let score = graded.as_ref().ok();
        let excluded = graded.as_ref().err().map(|excluded| &excluded.reason);
        let record = json!({"task": *group.task, "trajectory": trajectory, "score": score, "excluded": excluded});
        say!("{}", serde_json::to_string_pretty(&record)?);
    } else {
        display::trajectory(&group.task, trajectory, graded, &parts.tokenizer);
    }
    Ok(ExitCode::SUCCESS)
}
