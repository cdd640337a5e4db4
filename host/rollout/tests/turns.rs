//! The turns of a trajectory: each is drawn as the first one is, and waits for the tools of its own trajectory alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use candle_core::Device;
use rlf_dialogue::{
    BpeOptions, ChatTemplate, Dialogue, DialogueConfig, Ended, Fault, Finish, Message, Observation,
    Role, Split, Task, Tokenizer, Trajectory,
};
use rlf_environments::environments::{EnvironmentConfig, Environments};
use rlf_plugins::bindings::types;
use rlf_plugins::offered_tools::{Checking, LoadedTool, check_tools};
use rlf_plugins::outcome::CallEnd;
use rlf_plugins::registry::Registry;
use rlf_policy::measure::quickstart_shape;
use rlf_policy::{Model, Purpose, Qwen3Config, Sampler, SamplingParams};
use rlf_rollout::generate::{GenerateError, GenerateRequest, Generated, Generator, SequenceId};
use rlf_rollout::policy_generator::{PolicyGenerator, PolicyGeneratorConfig};
use rlf_rollout::shown_tools::ShownTools;
use rlf_rollout::{EpisodeContext, Player, PolicyPlayer, RolloutSettings, TrajectoryIndex};
use rlf_sandbox::{BoxFuture, Sandbox, SandboxConfig};
use rlf_tools::tool_manager::{Outside, ToolManager, ToolManagerConfig};
use rlf_tools::{ServerCall, ServerLimits, ToolServer};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const AT_ONCE: &str = r#"<tool_call>{"name":"wait","arguments":{"for_others":false}}</tool_call>"#;
const FOR_OTHERS: &str =
    r#"<tool_call>{"name":"wait","arguments":{"for_others":true}}</tool_call>"#;
const ANSWER: &str = "<answer>done</answer>";
const CONTEXT: usize = 512;

/// A tool that answers at once, or waits until another trajectory has ended.
#[derive(Debug)]
struct WaitingTool {
    tools: Vec<LoadedTool>,
    others_ended: Arc<Semaphore>,
}

impl ToolServer for WaitingTool {
    fn name(&self) -> &'static str {
        "test"
    }

    fn tools(&self) -> &[LoadedTool] {
        &self.tools
    }

    fn hash(&self) -> &'static str {
        ""
    }

    fn limits(&self) -> ServerLimits {
        ServerLimits {
            arguments_bytes: 1024,
            deadline: Duration::from_mins(10),
            retries: 0,
        }
    }

    fn call<'a>(&'a self, call: ServerCall<'a>) -> BoxFuture<'a, CallEnd> {
        let waits = call.arguments["for_others"] == true;
        Box::pin(async move {
            if waits {
                let ended = self.others_ended.acquire().await;
                ended.expect("it is never closed").forget();
            }
            CallEnd {
                ended: Ended::Ok,
                fault: Fault::None,
                observation: Some(Observation::text("waited", false)),
                detail: None,
            }
        })
    }
}

/// Says what the test decides. The policy draws each turn, too, or only the last one, after the same tokens as if it had said
/// the others.
struct Script {
    dialogue: Arc<Dialogue>,
    policy: PolicyGenerator,
    /// The turns of each sample.
    says: Vec<Vec<&'static str>>,
    sequences: Mutex<BTreeMap<SequenceId, Begun>>,
    draws_each: bool,
    /// The last turn of each sample that ended, as the policy drew it.
    drawn: Mutex<Vec<Vec<u32>>>,
    /// Gets a permit when the second sample ends.
    others_ended: Arc<Semaphore>,
}

/// A sequence that has begun.
#[derive(Default)]
struct Begun {
    turns: usize,
    read: Vec<u32>,
}

#[async_trait]
impl Generator for Script {
    async fn generate(&self, request: GenerateRequest) -> Result<Generated, GenerateError> {
        let sample = request.key.sample as usize;
        let says = &self.says[sample];
        let tokenizer = self.dialogue.tokenizer();
        let (ids, append) = {
            let mut sequences = self.sequences.lock().expect("nothing panics inside");
            let begun = sequences.entry(request.sequence).or_default();
            let mut ids = tokenizer.encode_trusted(says[begun.turns]);
            ids.push(self.dialogue.end_of_turn());
            begun.turns += 1;
            begun.read.extend(&request.append);
            let is_last = begun.turns == says.len();
            let append = (is_last || self.draws_each).then(|| std::mem::take(&mut begun.read));
            if !self.draws_each {
                begun.read.extend(&ids);
            }
            (ids, append.map(|append| (append, is_last)))
        };
        if let Some((append, is_last)) = append {
            let drawn = self.policy.generate(GenerateRequest {
                append,
                max_new_tokens: 8,
                ..request
            });
            let drawn = drawn.await?.ids;
            let mut all = self.drawn.lock().expect("nothing panics inside");
            if is_last {
                all.push(drawn);
            }
            if is_last && sample == 1 {
                self.others_ended.add_permits(1);
            }
        }
        let log_probs = vec![-0.5; ids.len()];
        Ok(Generated { ids, log_probs })
    }

    fn close(&self, sequence: SequenceId) {
        self.policy.close(sequence);
    }
}

/// Plays one sample for each list of turns, all of one task, and returns their trajectories and last turns.
async fn play(says: Vec<Vec<&'static str>>, draws_each: bool) -> (Vec<Trajectory>, Vec<Vec<u32>>) {
    let samples = says.len() as u64;
    let corpus = [AT_ONCE, FOR_OTHERS, ANSWER, "waited 0123456789"].map(String::from);
    let corpus = corpus.into_iter().cycle().take(40);
    let tokenizer = Tokenizer::train_bpe(corpus, &BpeOptions::default()).unwrap();
    let vocab_size = tokenizer.vocab_size();
    let config = DialogueConfig {
        context: CONTEXT as u32,
        ..DialogueConfig::default()
    };
    let dialogue = Dialogue::new(Arc::new(tokenizer), ChatTemplate::small(), config, &[]);
    let dialogue = Arc::new(dialogue.unwrap());
    let shape = Qwen3Config {
        vocab_size,
        ..quickstart_shape()
    };
    let model = Model::init(&shape, 0, &Device::Cpu).unwrap();
    let config = PolicyGeneratorConfig::default();
    let policy = PolicyGenerator::start(model, Vec::new(), CONTEXT, 1, config).unwrap();
    let others_ended = Arc::new(Semaphore::new(0));
    let definition = types::ToolDefinition {
        name: "wait".into(),
        description: "Waits.".into(),
        input_schema: r#"{"type":"object","properties":{"for_others":{"type":"boolean"}}}"#.into(),
        output_schema: None,
        hints: types::Hints::READ_ONLY,
        extra: Vec::new(),
    };
    let server = WaitingTool {
        tools: check_tools(vec![definition], &BTreeMap::new(), Checking::Host).unwrap(),
        others_ended: others_ended.clone(),
    };
    let outside = Outside {
        servers: vec![Arc::new(server)],
        ..Outside::default()
    };
    let sandbox = Sandbox::new(&SandboxConfig::default()).unwrap();
    let empty = tempfile::tempdir().unwrap();
    let registry = Registry::load(empty.path(), &BTreeMap::new(), &[], &sandbox);
    let tools = ToolManager::with_outside(&registry, &ToolManagerConfig::default(), outside);
    let context = EpisodeContext {
        dialogue: dialogue.clone(),
        tools: tools.unwrap(),
        environments: Environments::new(&registry, &sandbox, &EnvironmentConfig::default()),
        shown: ShownTools::default(),
        user: None,
        recorded: None,
    };
    let script = Arc::new(Script {
        dialogue,
        policy,
        says,
        sequences: Mutex::default(),
        draws_each,
        drawn: Mutex::default(),
        others_ended,
    });
    let player = Arc::new(PolicyPlayer::new(script.clone()));
    let settings = RolloutSettings {
        sampler: Sampler::new(SamplingParams::default(), 1, Purpose::Test).unwrap(),
        seed: 1,
        step: 1,
        steps: 1,
        split: Split::Train,
    };
    let task = Arc::new(Task {
        id: "q".into(),
        source: "test".into(),
        prompt: vec![Message::text(Role::User, "Wait.")],
        tools: None,
        reference: Value::Null,
        environment: None,
        setup: Value::Null,
        extra: Map::new(),
    });
    let mut plays = JoinSet::new();
    for sample in 0..samples {
        let (player, context) = (player.clone(), context.clone());
        let (settings, task) = (settings.clone(), task.clone());
        let index = TrajectoryIndex { task: 0, sample };
        plays.spawn(async move { player.play(&context, settings, task, index).await.unwrap() });
    }
    let trajectories = plays.join_all().await;
    let drawn = script.drawn.lock().unwrap().clone();
    (trajectories, drawn)
}

/// With a barrier for each turn, the second sample would never get to its second turn.
#[tokio::test]
async fn a_trajectory_waits_for_its_own_tools_alone() {
    let says = vec![
        vec![FOR_OTHERS, ANSWER],
        vec![AT_ONCE, AT_ONCE, AT_ONCE, ANSWER],
    ];
    let played = tokio::time::timeout(Duration::from_mins(1), play(says, true));
    let (trajectories, _) = played.await.expect("nobody waits for a barrier");
    for trajectory in trajectories {
        assert_eq!(trajectory.finish, Finish::Answered);
    }
}

/// All samples have read the same tokens, so greedy decoding would give all the same turn.
#[tokio::test]
async fn a_turn_after_a_call_is_drawn_and_not_the_likeliest() {
    let (_, drawn) = play(vec![vec![AT_ONCE, ANSWER]; 16], false).await;
    assert_eq!(drawn.len(), 16);
    let different: BTreeSet<_> = drawn.into_iter().collect();
    assert_eq!(different.len(), 16, "{different:?}");
}
