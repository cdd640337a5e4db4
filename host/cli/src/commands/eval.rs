//! `rlf-host eval RUN`: evaluates a run's policy.

use std::process::ExitCode;

use console::style;
use rlf_policy::SamplingParams;
use rlf_rollout::evaluate::Evaluation;
use rlf_rollout::statistics::Rate;
use rlf_run::SavedRun;
use rlf_run::tasks::split_from_name;

use crate::advice::with_options;
use crate::arguments::Eval;
use crate::display::{interval, name_width, percent};
use crate::plugins::sources;
use crate::progress::Progress;

/// Minimum number of tasks for which the interval is printed.
const MIN_TASKS: usize = 5;

pub(crate) fn run(options: &Eval) -> anyhow::Result<ExitCode> {
    let saved = SavedRun::open(
        &options.run,
        &sources(&options.plugins.plugins),
        options.device.as_deref(),
        &Progress::new(),
    )
    .map_err(with_options)?;
    let parts = &saved.parts;
    let params = if options.generation_config {
        saved.generation_config()?
    } else {
        SamplingParams {
            temperature: options.temperature,
            ..SamplingParams::default()
        }
    };
    let split = split_from_name(&options.split)?;
    let count = options.tasks.unwrap_or(parts.config.eval.tasks);
    let samples = options.samples.unwrap_or(parts.config.eval.samples);
    let chosen = parts.tasks.first(split, count);
    let evaluation = super::runtime()?.block_on(saved.evaluate(split, &chosen, samples, params))?;
    let users = parts.users(chosen.iter().map(|numbered| &*numbered.task));
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
            saved.checkpoint.path.display()
        );
        if let Some(users) = &users {
            say!("{} {users}", style("users").bold());
        }
        print(&evaluation);
    }
    Ok(ExitCode::SUCCESS)
}

fn print(evaluation: &Evaluation) {
    let names = name_width(evaluation.sampled_by_kind.keys());
    let row = |name: &str, greedy: Option<&Rate>, sampled: &Rate| {
        let greedy = percent(greedy.and_then(|rate| rate.mean));
        say!(
            "{name:<names$} {:>6} {greedy:>10} {:>10}   {}",
            sampled.tasks,
            percent(sampled.mean),
            interval_by_task(sampled)
        );
    };
    say!(
        "{:<names$} {:>6} {:>10} {:>10}   95 % interval by task",
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
                "{:<names$} {:>6} {:>10} {:>10}",
                format!("{name}{k}"),
                "",
                "",
                percent(Some(*value))
            );
        }
    }
    say!();
    say!("{}", style("mean of each term").bold());
    for (term, value) in &evaluation.terms {
        say!("{term:<30} {value:>8.3}");
    }
    if let Some(reward) = evaluation.reward {
        say!("{:<30} {reward:>8.3}", "reward");
    }
    say!("{:<30} {:>8.3}", "well-formed calls", evaluation.calls);
    say!("{:<30} {:>8.3}", "excluded", evaluation.excluded);
}

/// The confidence interval of a rate, or a dash if there are too few tasks for it to say anything.
fn interval_by_task(rate: &Rate) -> String {
    if (1..MIN_TASKS).contains(&rate.tasks) {
        return "–".to_owned();
    }
    interval(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_tasks_have_no_interval() {
        let of = |tasks| interval_by_task(&Rate::by_task(&vec![1.0; tasks]));
        assert_eq!(
            [of(0), of(1), of(4), of(5)],
            ["", "–", "–", "[47.8, 100.0]"]
        );
    }
}
