//! `rlf-host plan CONFIG`: tells the memory and the time that a run needs, before anything is loaded.

use std::process::ExitCode;

use anyhow::anyhow;
use console::style;
use rlf_policy::{Processor, PublishedShape, open_device};
use rlf_run::plan::{self, MemoryPart, StepTimes, Suggestion};
use rlf_run::{Plan, PlanOptions, PlannedMachine, RunConfig, RunFailure};
use serde_json::{Value, json};

use crate::advice::with_options;
use crate::arguments;
use crate::plugins::{configuration, sandbox, sources};
use crate::warning::warn;

pub(crate) fn run(options: &arguments::Plan) -> anyhow::Result<ExitCode> {
    let file = configuration(&sources(&[])?, &options.config)?;
    let shape = options.shape.as_deref().and_then(PublishedShape::named);
    let mut config = plan::configuration(&file, &options.set, shape.is_some())
        .map_err(|error| without_shape(error.into()))?;
    if let Some(device) = &options.device {
        config.device.clone_from(device);
    }
    let elsewhere = options.machine.as_deref().and_then(PlannedMachine::named);
    // What guests may take is known for this machine only.
    let sandboxes = match &elsewhere {
        Some(_) => None,
        None => Some(sandboxes(&config)?),
    };
    let machine = match elsewhere {
        Some(machine) => machine,
        None => PlannedMachine::here(
            &open_device(&config.device)?.device,
            config.precision,
            config.workers(),
        ),
    };
    let planning = PlanOptions {
        machine,
        shape: shape.map(PublishedShape::config),
        tokens_per_trajectory: options.tokens_per_trajectory,
    };
    let plan = Plan::new(&config, &planning).map_err(without_shape)?;
    let assumed = plan.lengths.tokens;
    if let Some(asked) = options
        .tokens_per_trajectory
        .filter(|asked| *asked > assumed)
    {
        warn(&format!(
            "--tokens-per-trajectory {asked}: cut to `dialogue.context`, which is {assumed}"
        ));
    }
    if options.json {
        let report = report(&plan, &config, sandboxes);
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print(&plan, &config, sandboxes);
    }
    Ok(match plan.fits() {
        Some(false) => ExitCode::FAILURE,
        Some(true) | None => ExitCode::SUCCESS,
    })
}

/// The error of a model that is not on this machine, with the option that plans without it.
fn without_shape(failure: RunFailure) -> anyhow::Error {
    match &failure {
        RunFailure::Configuration(error)
            if matches!(error.key(), Some("model" | "model.checkpoint")) =>
        {
            anyhow!("{failure} (--shape NAME plans without a checkpoint)")
        }
        _ => with_options(failure),
    }
}

/// Bytes that guests may take together, at most.
fn sandboxes(config: &RunConfig) -> anyhow::Result<u64> {
    let pools = sandbox(&config.sandbox)?.pools();
    let levels = pools
        .levels
        .iter()
        .chain([&pools.programs, &pools.sessions]);
    Ok(levels.map(|level| level.memory_bytes).sum())
}

/// A plan as JSON, in bytes and seconds.
fn report(plan: &Plan, config: &RunConfig, sandboxes: Option<u64>) -> Value {
    let parts = |parts: &[MemoryPart]| -> Value {
        let part = |part: &MemoryPart| json!({"name": part.name, "bytes": part.bytes, "upper_bound": part.is_bound});
        parts.iter().map(part).collect()
    };
    let phase = |phase: &rlf_run::plan::PhaseMemory| json!({"name": phase.name, "bytes": phase.bytes(), "parts": parts(&phase.parts)});
    let suggestion = |suggestion: &Suggestion| {
        json!({
            "setting": suggestion.to_string(), "saves_bytes": suggestion.saves,
            "effect": suggestion.effect,
        })
    };
    json!({
        "machine": plan.machine.name,
        "memory_bytes": plan.machine.memory,
        "parameters": plan.shape.parameter_count(),
        "workers": config.workers(),
        "tokens_per_trajectory": plan.lengths.tokens,
        "written_tokens_per_trajectory": plan.lengths.written,
        "cache_tokens": plan.cache_tokens(),
        "recomputed": plan.recomputed,
        "always": parts(&plan.memory.always),
        "phases": plan.memory.phases.iter().map(phase).collect::<Value>(),
        "peak_bytes": plan.memory.peak(),
        "host_bytes": plan.memory.host,
        "sandboxes_bytes": sandboxes,
        "fits": plan.fits(),
        "models_not_counted": plan.memory.not_counted,
        "suggestions": plan.suggestions.iter().map(suggestion).collect::<Value>(),
        "peak_bytes_with_suggestions": plan.with_all,
        "sft_step_s": plan.times.and_then(|times| times.sft),
        "rollout_s": plan.times.and_then(|times| times.rollout),
        "update_s": plan.times.and_then(|times| times.update),
        "rl_step_s": plan.times.and_then(|times| times.rl_step),
    })
}

fn print(plan: &Plan, config: &RunConfig, sandboxes: Option<u64>) {
    let row = |name: &str, value: String| say!("{:<11} {value}", style(name).bold());
    let (millions, layers) = (
        plan.shape.parameter_count() as f64 / 1e6,
        plan.shape.num_hidden_layers,
    );
    row(
        "policy",
        format!("{millions:.2} M parameters, {layers} layers"),
    );
    row("machine", plan.machine.name.clone());
    row(
        "assumed",
        format!(
            "every trajectory has {} tokens, of which the policy writes {}; change it with --tokens-per-trajectory",
            plan.lengths.tokens, plan.lengths.written
        ),
    );
    let of_default = if plan.cache_tokens() < config.cache_tokens() {
        format!(
            " (the machine has no memory for the usual {})",
            config.cache_tokens()
        )
    } else {
        String::new()
    };
    row(
        "cache",
        format!(
            "of keys and values: {} tokens of all open trajectories{of_default}; change it with engine.cache_tokens",
            plan.cache_tokens()
        ),
    );
    if !plan.recomputed.is_empty() {
        let keys = plan.recomputed.join(" and ");
        row(
            "activations",
            format!(
                "computed again in the backward pass, because the run does not fit with them: {keys} = true"
            ),
        );
    }
    say!();
    say!("{}", style("memory in GB (10^9 bytes)").bold());
    say!("  always");
    parts(&plan.memory.always);
    for phase in &plan.memory.phases {
        say!("  {}", phase.name);
        parts(&phase.parts);
    }
    say!();
    row("peak", peak(plan));
    for model in &plan.memory.not_counted {
        row("not counted", model.clone());
    }
    if let Some(host) = plan.memory.host {
        let what = "of the host's memory, while a checkpoint is saved or loaded";
        row("host", format!("{} GB {what}", gigabytes(host)));
    }
    if let Some(sandboxes) = sandboxes {
        let bytes = gigabytes(sandboxes);
        row(
            "sandboxes",
            format!(
                "may take up to {bytes} GB more of the host's memory, if plugins use it; [sandbox] limits it"
            ),
        );
    }
    changes(plan);
    times(plan, config);
}

fn parts(parts: &[MemoryPart]) {
    for part in parts {
        let most = if part.is_bound { "at most" } else { "" };
        say!("    {:<46} {:>9}  {most}", part.name, gigabytes(part.bytes));
    }
}

/// The peak beside the memory that there is.
fn peak(plan: &Plan) -> String {
    let peak = gigabytes(plan.memory.peak());
    let largest = plan.memory.phases.iter().max_by_key(|phase| phase.bytes());
    let during = largest.map_or("", |phase| phase.name);
    match (plan.machine.memory.map(gigabytes), plan.fits()) {
        (Some(memory), Some(true)) => {
            let fits = style("it fits").green();
            let without = if plan.memory.not_counted.is_empty() {
                ""
            } else {
                ", without what is not counted"
            };
            format!("{peak} GB of {memory} GB ({during}): {fits}{without}")
        }
        (Some(memory), _) => {
            let fits = style("it does not fit").red();
            format!("{peak} GB of {memory} GB ({during}): {fits}")
        }
        (None, _) => format!("{peak} GB ({during}); the size of the memory is unknown"),
    }
}

/// Prints what to change if the run does not fit.
fn changes(plan: &Plan) {
    let Some(with_all) = plan.with_all else {
        return;
    };
    say!();
    if plan.suggestions.is_empty() {
        say!("no setting saves memory: use a smaller model, or a device with more memory");
        return;
    }
    say!("{}", style("change, in this order").bold());
    for suggestion in &plan.suggestions {
        let setting = suggestion.to_string();
        let effect = suggestion.effect.map(|effect| format!("  ({effect})"));
        let note = effect.unwrap_or_default();
        say!(
            "    {setting:<46} saves {:>7}{note}",
            gigabytes(suggestion.saves)
        );
    }
    let enough = plan.machine.memory.is_some_and(|memory| with_all <= memory);
    let then = if enough {
        "it then fits"
    } else {
        "that is not enough: use a smaller model, or a device with more memory"
    };
    say!("    {:<46} {:>13}  {then}", "with all", gigabytes(with_all));
}

/// Prints the estimated times.
fn times(plan: &Plan, config: &RunConfig) {
    say!();
    let Some(StepTimes {
        sft,
        rollout,
        update,
        rl_step,
    }) = plan.times
    else {
        say!("time: the speed of this GPU is unknown");
        return;
    };
    say!(
        "{}",
        style("time, a rough estimate without tools, rewards and evaluations").bold()
    );
    let row = |name: &str, seconds: f64| say!("    {name:<46} {:>12}", duration(seconds));
    if let (Some(seconds), Some(settings)) = (sft, &config.sft) {
        row("a step of SFT", seconds);
        row("all steps of SFT", seconds * settings.steps as f64);
    }
    if let (Some(rollout), Some(update), Some(step)) = (rollout, update, rl_step) {
        let (steps, refill) = config
            .rl
            .as_ref()
            .map_or((0, 0), |rl| (rl.steps, rl.refill));
        let most = if refill > 0 { ", at most" } else { "" };
        row(&format!("trajectories of a step of RL{most}"), rollout);
        row("updates of a step of RL", update);
        row(&format!("all steps of RL{most}"), step * steps as f64);
    }
    if plan.machine.processor == Processor::Cpu {
        say!("    from the speed of matrix products here, measured just now");
    } else {
        say!(
            "    from what the GPU's maker states, and what one H200 reached with 0.6 to 4 B parameters;"
        );
        say!("    a smaller policy takes longer than this");
    }
    if plan.lengths.tokens == config.dialogue.context as usize {
        say!(
            "    as if each trajectory filled its context, which few do; see --tokens-per-trajectory"
        );
    }
}

/// Bytes in GB (10^9 bytes), with as many digits as are useful.
fn gigabytes(bytes: u64) -> String {
    let gigabytes = bytes as f64 / 1e9;
    match gigabytes {
        0.0..1.0 => format!("{gigabytes:.3}"),
        _ => format!("{gigabytes:.1}"),
    }
}

/// A time in the unit that suits it.
fn duration(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.1} s"),
        ..7_200.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.1} h", seconds / 3_600.0),
        _ => format!("{:.1} days", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_a_unit_that_suits_them() {
        let times = [0.5, 90.0, 600.0, 9_000.0, 864_000.0].map(duration);
        assert_eq!(times, ["0.5 s", "90.0 s", "10 min", "2.5 h", "10.0 days"]);
        assert_eq!(
            [12_345_678, 150_754_820_096].map(gigabytes),
            ["0.012", "150.8"]
        );
    }
}
