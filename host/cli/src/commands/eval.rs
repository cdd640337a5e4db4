//! `rlf-host eval RUN`: evaluates a run's policy, or a model behind an endpoint.

use std::process::ExitCode;

use console::style;
use rlf_dialogue::task::NumberedTask;
use rlf_endpoint::EndpointConfig;
use rlf_policy::SamplingParams;
use rlf_rollout::endpoint_loop::TokensSpent;
use rlf_rollout::evaluate::Evaluation;
use rlf_rollout::statistics::Rate;
use rlf_rollout::user::UsersMode;
use rlf_run::tasks::split_from_name;
use rlf_run::{MeasuredEndpoint, RunParts, SavedRun, Split};
use serde_json::{Value, json};

use crate::advice::with_options;
use crate::arguments::{Eval, MeasuredModel};
use crate::display::{excluded, interval, name_width, percent, printable};
use crate::interrupt;
use crate::plugins::{configuration, sources};
use crate::progress::Progress;
use crate::warning::warn;

/// Minimum number of tasks for which the interval is printed.
const MIN_TASKS: usize = 5;

pub(crate) fn run(options: &Eval) -> anyhow::Result<ExitCode> {
    interrupt::exit_with_servers()?;
    if options.measured.endpoint.is_some() {
        return measure(options);
    }
    let saved = SavedRun::open(
        &options.run,
        &sources(&options.plugins.plugins)?,
        options.device.as_deref(),
        &Progress::new(),
    )
    .map_err(with_options)?;
    let params = if options.generation_config {
        saved.generation_config()?
    } else {
        SamplingParams {
            temperature: options.temperature,
            ..SamplingParams::default()
        }
    };
    let chosen = Chosen::new(options, &saved.parts)?;
    let evaluating = saved.evaluate(chosen.split, &chosen.tasks, chosen.samples, params);
    let evaluation = super::runtime()?.block_on(evaluating)?;
    warn_of_excluded(&evaluation);
    if options.json {
        print_json(&evaluation, chosen.users.as_ref(), None)?;
    } else {
        say!(
            "{} {}",
            style("checkpoint").bold(),
            saved.checkpoint.path.display()
        );
        print(&evaluation, chosen.users.as_ref());
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures a model behind an endpoint.
fn measure(options: &Eval) -> anyhow::Result<ExitCode> {
    let sources = sources(&options.plugins.plugins)?;
    let path = configuration(&sources, &options.run)?;
    let mut config =
        MeasuredEndpoint::configuration(&path, &options.measured.set).map_err(with_options)?;
    choose(&mut config.endpoint, &options.measured);
    // Checked with the other keys.
    config.endpoint.temperature = f64::from(options.temperature);
    let run = path.is_dir().then_some(path.as_path());
    let measured =
        MeasuredEndpoint::open(config, run, &sources, &Progress::new()).map_err(with_options)?;
    let chosen = Chosen::new(options, &measured.parts)?;
    let temperature = options.temperature;
    let measuring = measured.evaluate(chosen.split, &chosen.tasks, chosen.samples, temperature);
    let measurement = super::runtime()?
        .block_on(measuring)
        .map_err(with_options)?;
    warn_of_excluded(&measurement.evaluation);
    let endpoint = measured.endpoint().config();
    let (url, model) = (endpoint.base(), &endpoint.model);
    let spent = &measurement.spent;
    if options.json {
        let more = json!({"endpoint": {"url": url, "model": model}, "spent": spent});
        print_json(&measurement.evaluation, chosen.users.as_ref(), Some(more))?;
    } else {
        say!("{} {}", style("endpoint").bold(), printable(&url));
        say!("{} {}", style("model").bold(), printable(model));
        print(&measurement.evaluation, chosen.users.as_ref());
        print_spent(spent);
    }
    Ok(ExitCode::SUCCESS)
}

fn warn_of_excluded(evaluation: &Evaluation) {
    if let Some(why) = excluded(evaluation) {
        warn(&why);
    }
}

/// Sets the keys of `[endpoint]` that the options give.
fn choose(endpoint: &mut EndpointConfig, options: &MeasuredModel) {
    if let Some(url) = options
        .endpoint
        .as_ref()
        .filter(|url| **url != endpoint.url)
    {
        endpoint.url.clone_from(url);
        // The key in the file is for another endpoint.
        endpoint.key_env = None;
        endpoint.key_file = None;
    }
    if let Some(model) = &options.model {
        endpoint.model.clone_from(model);
    }
    if let Some(key) = &options.key_env {
        endpoint.key_env = Some(key.clone());
        endpoint.key_file = None;
    }
    if let Some(most) = options.max_concurrent {
        endpoint.max_concurrent = most;
    }
}

/// The tasks of an evaluation.
struct Chosen {
    split: Split,
    tasks: Vec<NumberedTask>,
    samples: usize,
    users: Option<UsersMode>,
}

impl Chosen {
    fn new(options: &Eval, parts: &RunParts) -> anyhow::Result<Self> {
        let split = split_from_name(&options.split)?;
        let count = options.tasks.unwrap_or(parts.config.eval.tasks);
        let tasks = parts.tasks.first(split, count);
        Ok(Self {
            users: parts.users(tasks.iter().map(|numbered| &*numbered.task)),
            samples: options.samples.unwrap_or(parts.config.eval.samples),
            split,
            tasks,
        })
    }
}

/// Prints an evaluation as JSON, with the keys of another object.
fn print_json(
    evaluation: &Evaluation,
    users: Option<&UsersMode>,
    more: Option<Value>,
) -> anyhow::Result<()> {
    let mut json = serde_json::to_value(evaluation)?;
    if let Some(users) = users {
        json["users"] = serde_json::to_value(users)?;
    }
    if let (Some(json), Some(Value::Object(more))) = (json.as_object_mut(), more) {
        json.extend(more);
    }
    say!("{}", serde_json::to_string_pretty(&json)?);
    Ok(())
}

/// Prints the tokens that a measurement took.
fn print_spent(spent: &TokensSpent) {
    let uncounted = match spent.uncounted {
        0 => String::new(),
        uncounted => format!(", {uncounted} of which the endpoint did not count"),
    };
    say!();
    say!(
        "{} {} prompt + {} completion, in {} answers{uncounted}",
        style("tokens").bold(),
        spent.prompt_tokens,
        spent.completion_tokens,
        spent.answers
    );
}

fn print(evaluation: &Evaluation, users: Option<&UsersMode>) {
    if let Some(users) = users {
        say!("{} {users}", style("users").bold());
    }
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
