//! `rlf-host eval RUN`.

use std::process::ExitCode;

use anyhow::Context;
use console::style;
use rlf_policy::{GenerationConfig, SamplingParams, open_device};
use rlf_rollout::evaluate::Evaluation;
use rlf_rollout::statistics::Rate;

use crate::arguments::Eval;
use crate::assemble::Parts;
use crate::display::{interval, percent};
use crate::tasks;

pub(crate) fn run(options: &Eval) -> anyhow::Result<ExitCode> {
    let (parts, checkpoint) = Parts::of_run(
        &options.run,
        &options.plugins.plugins,
        options.device.as_deref(),
    )?;
    let device = open_device(&parts.config.device)?.device;
    let model = parts.load_model(&checkpoint.path, &device)?;
    let params = if options.generation_config {
        let folder = parts
            .config
            .model
            .checkpoint
            .as_deref()
            .unwrap_or(&checkpoint.path);
        GenerationConfig::load(folder)?
            .with_context(|| format!("{} has no generation_config.json", folder.display()))?
            .sampling()
    } else {
        SamplingParams {
            temperature: options.temperature,
            ..SamplingParams::default()
        }
    };
    let split = tasks::split(&options.split)?;
    let count = options.tasks.unwrap_or(parts.config.eval.tasks);
    let samples = options.samples.unwrap_or(parts.config.eval.samples);
    let chosen = parts.tasks.first(split, count);
    let (evaluation, _) = super::runtime()?.block_on(parts.evaluate(
        &model,
        split,
        &chosen,
        samples,
        params,
        checkpoint.state.step,
    ))?;
    let users = parts.users(Some(&chosen));
    if options.json {
        let mut json = serde_json::to_value(&evaluation)?;
        if let Some(users) = &users {
            json["users"] = serde_json::to_value(users)?;
        }
        say!("{}", serde_json::to_string_pretty(&json)?);
    } else {
        say!(
            "{} {}",
            style("checkpoint").bold(),
            checkpoint.path.display()
        );
        if let Some(users) = &users {
            say!("{} {users}", style("users").bold());
        }
        print(&evaluation);
    }
    Ok(ExitCode::SUCCESS)
}

fn print(evaluation: &Evaluation) {
    let row = |name: &str, greedy: Option<&Rate>, sampled: &Rate| {
        let greedy = percent(greedy.and_then(|rate| rate.mean));
        say!(
            "{name:<16} {:>6} {greedy:>10} {:>10}   {}",
            sampled.tasks,
            percent(sampled.mean),
            interval(sampled)
        );
    };
    say!(
        "{:<16} {:>6} {:>10} {:>10}   95 % interval by task",
        evaluation.split,
        "tasks",
        "greedy",
        "sampled"
    );
    row("all", Some(&evaluation.greedy), &evaluation.sampled);
    for (kind, rate) in &evaluation.sampled_by_kind {
        row(
            &format!("  {kind}"),
            evaluation.greedy_by_kind.get(kind),
            rate,
        );
    }
    say!();
    for (name, by_k) in [
        ("pass@", &evaluation.pass_at_k),
        ("pass^", &evaluation.pass_hat_k),
    ] {
        for (k, value) in by_k {
            say!(
                "{:<16} {:>6} {:>10} {:>10}",
                format!("{name}{k}"),
                "",
                "",
                percent(Some(*value))
            );
        }
    }
    say!();
    for (term, value) in &evaluation.terms {
        say!("{term:<30} {value:>8.3}");
    }
    if let Some(reward) = evaluation.reward {
        say!("{:<30} {reward:>8.3}", "reward");
    }
    say!("{:<30} {:>8.3}", "calls per trajectory", evaluation.calls);
    say!("{:<30} {:>8.3}", "excluded", evaluation.excluded);
}
