//! Compares a rollout whose tools are slow with one that has a barrier for each turn, and with what no order of the
//! same work can go below.
//!
//! All ways play the same trajectories with the same player, parser, tools and policy. They differ only in who waits
//! for whom. The policy draws every token, and the plan says what the model said, so that the work does not depend on
//! random weights. Nothing is graded.

mod plan;
mod script;
mod tool;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use candle_core::Device;
use rlf_dialogue::trajectory::Event;
use rlf_dialogue::{
    BpeOptions, ChatTemplate, Dialogue, DialogueConfig, Finish, Message, Role, Split, Task,
    Tokenizer, Trajectory,
};
use rlf_environments::environments::{EnvironmentConfig, Environments};
use rlf_plugins::registry::Registry;
use rlf_policy::measure::quickstart_shape;
use rlf_policy::{Model, Purpose, Sampler, SamplingParams, cpu_facts};
use rlf_rollout::generate::Generator as _;
use rlf_rollout::policy_generator::{PolicyGenerator, PolicyGeneratorConfig};
use rlf_rollout::shown_tools::ShownTools;
use rlf_rollout::{EpisodeContext, Player, PolicyPlayer, RolloutSettings, TrajectoryIndex};
use rlf_run::plugins::KINDS;
use rlf_tools::tool_manager::{Outside, ToolManager, ToolManagerConfig};
use serde_json::{Map, Value};
use tokio::task::JoinSet;

use plan::{GROUP_SIZE, Plan, TASKS, TRAJECTORIES};
use script::ForcedTurns;
use tool::WaitingTool;

/// Number of tokens that a trajectory may have. All turns with prompt and observations have fewer.
const CONTEXT: usize = 512;
/// The wanted speed-up over the barrier.
const SPEED_UP_GOAL: f64 = 6.8;
/// The wanted idle share of our time, at most.
const IDLE_GOAL: f64 = 0.05;

/// The work to measure.
pub(crate) struct Options<'a> {
    /// Threads of the policy.
    pub(crate) workers: usize,
    /// Seed of the plans.
    pub(crate) seed: u64,
    /// Numbers of trajectories that wait for each other at a barrier.
    pub(crate) batches: &'a [usize],
}

/// Measures all ways and prints one table.
pub(crate) fn run(options: &Options<'_>) -> anyhow::Result<()> {
    let runtime = rlf_run::runtime()?;
    let bench = Bench::new(options)?;
    bench.print_work(options);
    runtime.block_on(async {
        // The first play also touches the memory of the policy's cache for the first time.
        bench.measure(&bench.prompt_tools, None).await?;
        let decoding = bench.measure(&bench.prompt_tools, None).await?;
        let chain = bench.longest_chain().await?;
        let bound = decoding.busy.max(chain);
        let ours = bench.measure(&bench.slow_tools, None).await?;
        let mut rows = Vec::new();
        for &batch in options.batches {
            let barrier = bench.measure(&bench.slow_tools, Some(batch)).await?;
            rows.push((batch, barrier));
        }
        print_table(&rows, &ours, &decoding, chain);
        print_goals(&rows, &ours, bound);
        Ok(())
    })
}

/// Time of one way to play all trajectories, in seconds.
struct Measured {
    /// From the first prompt to the last answer.
    seconds: f64,
    /// Time in which the policy computed.
    busy: f64,
    /// Number of drawn tokens.
    tokens: u64,
}

/// Everything that all ways share.
struct Bench {
    dialogue: Arc<Dialogue>,
    plans: Arc<[Plan]>,
    tasks: Vec<Arc<Task>>,
    policy: Arc<PolicyGenerator>,
    environments: Environments,
    settings: RolloutSettings,
    /// Tools that take their time.
    slow_tools: ToolManager,
    /// The same tools, which answer at once.
    prompt_tools: ToolManager,
}

impl Bench {
    fn new(options: &Options<'_>) -> anyhow::Result<Self> {
        let shape = quickstart_shape();
        // No id that the model reads is beyond its vocabulary.
        let words = BpeOptions {
            vocab_size: shape.vocab_size,
            ..BpeOptions::default()
        };
        let tokenizer = Tokenizer::train_bpe(plan::corpus(), &words)?;
        let config = DialogueConfig {
            context: CONTEXT as u32,
            ..DialogueConfig::default()
        };
        let dialogue = Dialogue::new(Arc::new(tokenizer), ChatTemplate::small(), config, &[])?;
        // It draws as many tokens as it is told, because no token ends a turn.
        let policy = PolicyGenerator::start(
            Model::init(&shape, 0, &Device::Cpu)?,
            Vec::new(),
            CONTEXT,
            options.workers,
            PolicyGeneratorConfig {
                slots: TRAJECTORIES,
                ..PolicyGeneratorConfig::default()
            },
        )?;
        let sandbox = crate::user_sandbox()?;
        let empty = tempfile::tempdir().context("cannot make a temporary folder")?;
        let registry = Registry::load(empty.path(), &BTreeMap::new(), KINDS, &sandbox);
        let tools = |waits| -> anyhow::Result<ToolManager> {
            let outside = Outside {
                servers: vec![Arc::new(WaitingTool::new(waits)?)],
                ..Outside::default()
            };
            let config = ToolManagerConfig::default();
            Ok(ToolManager::with_outside(&registry, &config, outside)?)
        };
        Ok(Self {
            plans: Plan::all(&dialogue, options.seed).into(),
            dialogue: Arc::new(dialogue),
            tasks: (0..TASKS).map(task).collect(),
            policy: Arc::new(policy),
            environments: Environments::new(&registry, &sandbox, &EnvironmentConfig::default()),
            settings: RolloutSettings {
                sampler: Sampler::new(SamplingParams::default(), options.seed, Purpose::Test)?,
                seed: options.seed,
                step: 1,
                steps: 1,
                split: Split::Train,
            },
            slow_tools: tools(true)?,
            prompt_tools: tools(false)?,
        })
    }

    /// Plays all trajectories. With a `batch`, so many of them wait for each other at each turn, and the batches follow
    /// one another. Otherwise nobody waits for another one.
    async fn measure(&self, tools: &ToolManager, batch: Option<usize>) -> anyhow::Result<Measured> {
        let size = batch.unwrap_or(TRAJECTORIES);
        self.policy.take_times().await;
        let began = Instant::now();
        for start in (0..TRAJECTORIES).step_by(size) {
            let members = start..(start + size).min(TRAJECTORIES);
            self.play(members, tools, batch.is_some()).await?;
        }
        let seconds = began.elapsed().as_secs_f64();
        let times = self.policy.take_times().await;
        let planned: usize = self.plans.iter().map(Plan::tokens).sum();
        ensure!(
            times.sampled == planned as u64,
            "{} tokens were drawn, and the plan has {planned}",
            times.sampled
        );
        Ok(Measured {
            seconds,
            busy: times.busy.as_secs_f64(),
            tokens: times.sampled,
        })
    }

    /// Plays some trajectories, all at once.
    async fn play(
        &self,
        members: Range<usize>,
        tools: &ToolManager,
        barriers: bool,
    ) -> anyhow::Result<()> {
        let mut turns = ForcedTurns::new(Arc::clone(&self.policy), Arc::clone(&self.plans));
        if barriers {
            turns = turns.with_barriers(members.clone());
        }
        let player = Arc::new(PolicyPlayer::new(Arc::new(turns)));
        let context = EpisodeContext {
            dialogue: Arc::clone(&self.dialogue),
            tools: tools.clone(),
            environments: self.environments.clone(),
            shown: ShownTools::default(),
            user: None,
            recorded: None,
        };
        let mut plays = JoinSet::new();
        for member in members {
            let index = TrajectoryIndex {
                task: (member / GROUP_SIZE) as u64,
                sample: (member % GROUP_SIZE) as u64,
            };
            let task = Arc::clone(&self.tasks[member / GROUP_SIZE]);
            let (player, context) = (Arc::clone(&player), context.clone());
            let settings = self.settings.clone();
            plays.spawn(async move {
                let played = player.play(&context, settings, task, index);
                (member, played.await)
            });
        }
        while let Some(joined) = plays.join_next().await {
            let (member, played) = joined?;
            check(&self.plans[member], &played?)?;
        }
        Ok(())
    }

    /// The seconds that the trajectory with the slowest tools needs if it is alone: its latencies and its own decoding.
    async fn longest_chain(&self) -> anyhow::Result<f64> {
        let wait = |member: &usize| self.plans[*member].latencies().sum::<Duration>();
        let slowest = (0..TRAJECTORIES)
            .max_by_key(wait)
            .context("there is no trajectory")?;
        let next = slowest + 1;
        self.policy.take_times().await;
        self.play(slowest..next, &self.prompt_tools, false).await?;
        let decoding = self.policy.take_times().await.busy;
        Ok((wait(&slowest) + decoding).as_secs_f64())
    }

    fn print_work(&self, options: &Options<'_>) {
        let mut latencies: Vec<Duration> = self.plans.iter().flat_map(Plan::latencies).collect();
        latencies.sort_unstable();
        let turns: usize = self.plans.iter().map(|plan| plan.turns.len()).sum();
        let tokens: usize = self.plans.iter().map(Plan::tokens).sum();
        let ms = |share: f64| {
            let place = (share * (latencies.len() - 1) as f64).round() as usize;
            latencies[place].as_millis()
        };
        println!(
            "{TRAJECTORIES} trajectories with {turns} turns, {} calls and {tokens} drawn tokens; \
             quickstart shape, {} threads, {}, seed {}",
            latencies.len(),
            options.workers,
            cpu_facts().simd,
            options.seed
        );
        println!(
            "latency of the tools: median {} ms, p99 {} ms, longest {} ms\n",
            ms(0.5),
            ms(0.99),
            ms(1.0)
        );
    }
}

fn task(number: usize) -> Arc<Task> {
    Arc::new(Task {
        id: number.to_string(),
        source: "bench".to_owned(),
        prompt: vec![Message::text(Role::User, plan::prompt(number))],
        tools: None,
        reference: Value::Null,
        environment: None,
        setup: Value::Null,
        extra: Map::new(),
    })
}

/// Fails if a trajectory did not go as planned. The others of its batch would then wait for it forever.
fn check(plan: &Plan, played: &Trajectory) -> anyhow::Result<()> {
    let is_turn = |event: &&Event| matches!(event, Event::Turn(_));
    let turns = played.events.iter().filter(is_turn).count();
    ensure!(
        played.finish == Finish::Answered && turns == plan.turns.len(),
        "trajectory {} has {turns} of {} turns and ended as {}: {}",
        played.id,
        plan.turns.len(),
        played.finish.as_str(),
        played.excluded.as_deref().unwrap_or("not excluded")
    );
    Ok(())
}

fn print_table(rows: &[(usize, Measured)], ours: &Measured, decoding: &Measured, chain: f64) {
    println!(
        "  {:<38}{:>10}{:>12}{:>11}{:>14}",
        "", "seconds", "x our time", "tokens/s", "policy busy"
    );
    let row = |name: &str, seconds: f64, measured: &Measured| {
        println!(
            "  {name:<38}{seconds:>10.2}{:>12.2}{:>11.0}{:>12.1} %",
            seconds / ours.seconds,
            measured.tokens as f64 / seconds,
            100.0 * measured.busy / seconds
        );
    };
    for (batch, barrier) in rows {
        let name = format!("a barrier for each turn, {batch} at once");
        row(&name, barrier.seconds, barrier);
    }
    row("ours: no barrier", ours.seconds, ours);
    row("bound: decoding alone", decoding.busy, decoding);
    println!(
        "  {:<38}{chain:>10.2}{:>12.2}",
        "bound: the longest chain of calls",
        chain / ours.seconds
    );
}

fn print_goals(rows: &[(usize, Measured)], ours: &Measured, bound: f64) {
    println!(
        "\nidle against the larger bound: {:.1} % of our time (goal: at most {:.0} %)",
        100.0 * (1.0 - bound / ours.seconds),
        100.0 * IDLE_GOAL
    );
    for (batch, barrier) in rows {
        println!(
            "speed-up over the barrier of {batch}: {:.2} (goal: {SPEED_UP_GOAL}); \
             at most {:.2} is possible in any order",
            barrier.seconds / ours.seconds,
            barrier.seconds / bound
        );
    }
}
