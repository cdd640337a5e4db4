//! Trains the quickstart from Rust. Run it in the repository's root, after `cargo xtask plugins`:
//!
//!     cargo run --release --workspace --example quickstart -- output=runs/from-rust
//!
//! Arguments override settings of `configs/quickstart.toml`, such as `rl.steps=20`.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use rlf_run::{
    Evaluation, MetricsLine, Moment, Phase, PluginSources, RunConfig, RunEnd, RunReporter,
    SamplingParams, SavedRun, Silent, Split, TrainOptions, runtime, train,
};

/// Prints every 100th step, and every evaluation.
struct Printer;

impl RunReporter for Printer {
    fn stepped(&self, line: &MetricsLine, steps: u64) {
        if line.step().is_multiple_of(100) {
            println!("{} step {} of {steps}", line.phase(), line.step());
        }
    }

    fn evaluated(&self, moment: Option<Moment>, _: (Phase, u64), evaluation: &Evaluation) {
        let (split, solved) = (&evaluation.split, evaluation.greedy.mean);
        println!(
            "{split} split {}: {:.3} solved",
            moment.map_or("during training", Moment::as_str),
            solved.unwrap_or_default()
        );
    }
}

/// Trains, and returns the share of ten test tasks that the trained policy solves.
pub(crate) fn quickstart(
    config: &Path,
    plugins: &Path,
    settings: &[String],
) -> Result<f64, Box<dyn Error>> {
    let config = RunConfig::load(config, settings)?;
    let run = config.output.clone();
    let plugins = PluginSources::new(plugins);
    let options = TrainOptions::new(plugins.clone());
    let runtime = runtime()?;
    let end = runtime.block_on(train(config, &options, Arc::new(Printer)))?;
    assert_eq!(end, RunEnd::Finished, "nothing interrupts it");

    let saved = SavedRun::open(&run, &plugins, None, &Silent)?;
    let tasks = saved.parts.tasks.first(Split::Test, 10);
    let evaluation = saved.evaluate(Split::Test, &tasks, 1, SamplingParams::default());
    Ok(runtime
        .block_on(evaluation)?
        .greedy
        .mean
        .unwrap_or_default())
}

fn main() -> Result<(), Box<dyn Error>> {
    let settings: Vec<String> = std::env::args().skip(1).collect();
    let solved = quickstart(
        "configs/quickstart.toml".as_ref(),
        "target/plugins".as_ref(),
        &settings,
    )?;
    println!(
        "the policy solves {:.0} % of ten test tasks",
        solved * 100.0
    );
    Ok(())
}
