//! From the model's text through an environment to the score: the effect of each way of ending on a trajectory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rlf_dialogue::task::NumberedTask;
use rlf_dialogue::trajectory::{Event, Finish, Trajectory};
use rlf_dialogue::{
    BpeOptions, ChatTemplate, Dialogue, DialogueConfig, Graded, Message, Role, Split, Task,
    Tokenizer,
};
use rlf_policy::{Purpose, Sampler, SamplingParams};
use rlf_rewards::reward_stack::RewardStack;
use rlf_rollout::agent::{
    Agent, AgentEnd, AgentMessage, AgentPlayer, AgentReport, AgentTrajectory, TurnRequest,
};
use rlf_rollout::generate::{GenerateError, GenerateRequest, Generated, Generator, SequenceId};
use rlf_rollout::rollout::rollout;
use rlf_rollout::shown_tools::ShownTools;
use rlf_rollout::{EpisodeContext, Player, PolicyPlayer, RolloutEngine, RolloutSettings};
use serde_json::{Value, json};

use crate::test_host::{TestHost, host};

/// A model that says these texts in turn, sample by sample.
struct Script {
    dialogue: Arc<Dialogue>,
    turns: Vec<Vec<String>>,
    said: Mutex<HashMap<u64, usize>>,
}

#[async_trait]
impl Generator for Script {
    async fn generate(&self, request: GenerateRequest) -> Result<Generated, GenerateError> {
        let sample = request.key.sample;
        let text = {
            let mut said = self.said.lock().expect("nothing panics inside");
            let turn = said.entry(sample).or_default();
            *turn += 1;
            let turns = &self.turns[usize::try_from(sample).expect("few samples")];
            turns
                .get(*turn - 1)
                .cloned()
                .unwrap_or_else(|| "nothing more".into())
        };
        let mut ids = self.dialogue.tokenizer().encode_trusted(&text);
        ids.push(self.dialogue.end_of_turn());
        let log_probs = vec![-0.5; ids.len()];
        Ok(Generated { ids, log_probs })
    }

    fn close(&self, _: SequenceId) {}
}

pub(crate) fn calls(text: &[(&str, Value)]) -> String {
    let written: Vec<String> = text
        .iter()
        .map(|(name, arguments)| {
            let call = json!({"name": name, "arguments": arguments});
            format!("<tool_call>\n{call}\n</tool_call>\n")
        })
        .collect();
    written.concat()
}

pub(crate) fn task(setup: Value, tools: Option<&[&str]>, extra: Value) -> Task {
    Task {
        id: "t".into(),
        source: "test".into(),
        prompt: vec![Message::text(Role::User, "Count to three.")],
        tools: tools.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        reference: json!({"count": 3}),
        environment: Some("counter".into()),
        setup,
        extra: serde_json::from_value(extra).expect("an object"),
    }
}

/// Plays one sample for each script; returns the text of the sequences too.
async fn play(
    host: &TestHost,
    history: &str,
    task: Task,
    scripts: &[&[String]],
) -> (Vec<Trajectory>, Vec<Graded>, Arc<Dialogue>) {
    let dialogue = format!("history = \"{history}\"");
    play_led(host, &dialogue, task, scripts, None).await
}

/// Like [`play`], with these settings of the dialogue, and an agent that leads the trajectories.
pub(crate) async fn play_led(
    host: &TestHost,
    dialogue: &str,
    task: Task,
    scripts: &[&[String]],
    agent: Option<Arc<dyn Agent>>,
) -> (Vec<Trajectory>, Vec<Graded>, Arc<Dialogue>) {
    let corpus = ["Count to three. {\"by\": 1} add tool_call name arguments answer"];
    let corpus = corpus.map(String::from).into_iter().cycle().take(40);
    let tokenizer = Tokenizer::train_bpe(corpus, &BpeOptions::default()).expect("trained");
    let config: DialogueConfig = rlf_config::parse(
        &format!("context = 100000\nmax_tokens_per_turn = 10000\n{dialogue}\n"),
        "dialogue.toml",
    )
    .expect("well written");
    let dialogue = Dialogue::new(Arc::new(tokenizer), ChatTemplate::small(), config, &[]);
    let dialogue = Arc::new(dialogue.expect("they fit"));
    let rewards =
        "success = \"reward-verdict.success >= 1\"\n[[stack]]\nplugin = \"reward-verdict\"\n";
    let rewards = rlf_config::parse(rewards, "rewards.toml").expect("well written");
    let generator = Arc::new(Script {
        dialogue: Arc::clone(&dialogue),
        turns: scripts.iter().map(|turns| turns.to_vec()).collect(),
        said: Mutex::default(),
    });
    let player: Arc<dyn Player> = match agent {
        None => Arc::new(PolicyPlayer::new(generator)),
        Some(agent) => Arc::new(AgentPlayer::new(agent, generator)),
    };
    let engine = Arc::new(RolloutEngine {
        context: EpisodeContext {
            dialogue: Arc::clone(&dialogue),
            tools: host.tools.clone(),
            environments: host.environments.clone(),
            shown: ShownTools::default(),
            user: None,
            recorded: None,
        },
        rewards: Arc::new(RewardStack::new(&host.registry, &rewards).expect("it is there")),
        player,
    });
    let settings = RolloutSettings {
        sampler: Sampler::new(SamplingParams::default(), 1, Purpose::Test).expect("the defaults"),
        seed: 1,
        step: 1,
        steps: 2,
        split: Split::Train,
    };
    let task = Arc::new(task);
    let tasks = [NumberedTask { number: 0, task }];
    let mut groups = rollout(&engine, &tasks, scripts.len(), &settings)
        .await
        .expect("nothing an environment does is an error of the rollout");
    let group = groups.remove(0);
    (group.trajectories, group.scores, dialogue)
}

/// An agent that makes the policy's calls until it makes none, and fails if it gets no turn.
struct Loop;

#[async_trait]
impl Agent for Loop {
    async fn lead(&self, trajectory: Arc<AgentTrajectory>) -> AgentEnd {
        let prompt = trajectory.prompt().await;
        let mut messages: Vec<AgentMessage> = prompt.into_iter().map(AgentMessage::new).collect();
        loop {
            let request = TurnRequest {
                messages: messages.clone(),
                tools: trajectory.tools().await.expect("there are tools"),
                max_tokens: None,
            };
            let said = match trajectory.complete(request).await {
                Ok(turn) => turn.message,
                Err(refused) => return AgentEnd::Failed(refused.to_string()),
            };
            if said.tool_calls.is_empty() {
                return AgentEnd::Finished(AgentReport::default());
            }
            messages.push(AgentMessage::new(said.clone()));
            for call in said.tool_calls {
                let id = Some(call.call_id);
                let made = trajectory.call(id.clone(), call.name, call.arguments).await;
                let observation = made.expect("is carried out").outcome.observation;
                messages.push(AgentMessage {
                    call_id: id,
                    ..AgentMessage::new(Message {
                        content: observation.expect("it was served").content,
                        ..Message::text(Role::Tool, "")
                    })
                });
            }
        }
    }
}

pub(crate) fn outcomes(trajectory: &Trajectory) -> Vec<(&str, Option<&str>)> {
    (trajectory.events.iter())
        .filter_map(|event| match event {
            Event::Outcome(outcome) => Some((outcome.ended.as_str(), outcome.state.as_deref())),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn each_sample_has_a_session_of_its_own_and_is_judged_by_where_it_led() {
    let host = host();
    let one = calls(&[("add", json!({"by": 1}))]);
    let three = calls(&[("add", json!({"by": 2})), ("add", json!({"by": 1}))]);
    let (trajectories, scores, _) = play(
        &host,
        "as-sampled",
        task(json!({}), None, json!({})),
        &[
            &[one.clone(), "end".into()],
            &[three, one, "end".into()],
            &[calls(&[("add", json!({"by": 3}))]), "end".into()],
        ],
    )
    .await;
    let ends: Vec<_> = trajectories
        .iter()
        .map(|one| one.final_state.as_ref().map(|state| state["count"].clone()))
        .collect();
    assert_eq!(ends, [Some(json!(1)), Some(json!(4)), Some(json!(3))]);
    let success: Vec<bool> = scores
        .iter()
        .map(|score| score.as_ref().expect("graded").success)
        .collect();
    assert_eq!(success, [false, false, true]);
    for trajectory in &trajectories {
        assert_eq!(trajectory.finish, Finish::Terminated);
        assert!(
            outcomes(trajectory)
                .iter()
                .all(|(ended, state)| *ended == "ok" && state.is_some())
        );
        assert!(trajectory.verdict.is_some() && trajectory.excluded.is_none());
    }
    // Calls of one turn run in their order: 2, then 3.
    let states = outcomes(&trajectories[1]);
    assert_eq!(states.len(), 3);
    assert_ne!(states[0].1, states[1].1);
}

#[tokio::test]
async fn an_agent_acts_in_the_session_and_is_graded_after_the_environment_ended_the_episode() {
    let host = host();
    let add = |by: u32| calls(&[("add", json!({ "by": by }))]);
    let scripts: [&[String]; 2] = [
        &[add(1), add(2), "done".into()],
        &[
            calls(&[("open_door", json!({}))]),
            add(3),
            calls(&[("secret", json!({}))]),
            add(1),
        ],
    ];
    let task = task(json!({}), None, json!({}));
    let agent = Some(Arc::new(Loop) as Arc<dyn Agent>);
    let (trajectories, scores, _) = play_led(&host, "", task, &scripts, agent).await;
    let ends = trajectories.iter().map(|one| one.finish);
    assert_eq!(
        ends.collect::<Vec<_>>(),
        [Finish::Answered, Finish::Terminated]
    );
    for (trajectory, score) in trajectories.iter().zip(&scores) {
        assert_eq!(trajectory.excluded, None);
        assert!(score.as_ref().expect("graded").success, "{trajectory:?}");
        let states = outcomes(trajectory);
        assert!(states.len() > 1 && states.iter().all(|(_, state)| state.is_some()));
    }
    // The tools changed when the session was opened, so a new sequence began.
    let sequences = trajectories.iter().map(|one| one.sequences.len());
    assert_eq!(sequences.collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test]
async fn a_simulated_user_answers_and_its_words_are_not_the_models() {
    let host = host();
    let (trajectories, ..) = play(
        &host,
        "as-sampled",
        task(json!({}), None, json!({})),
        &[&[
            "Which number?".into(),
            calls(&[("add", json!({"by": 3}))]),
            "end".into(),
        ]],
    )
    .await;
    let said: Vec<String> = (trajectories[0].events.iter())
        .filter_map(|event| match event {
            Event::User(message) => Some(message.plain_text()),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["you said: Which number?"]);
    let masked = trajectories[0].sequences[0]
        .masked()
        .expect("it was sampled");
    let model: usize = (trajectories[0].events.iter())
        .map(|event| match event {
            Event::Turn(turn) => turn.tokens as usize,
            _ => 0,
        })
        .sum();
    assert_eq!(
        masked.mask.count(),
        model,
        "what the user said is no token of the model's"
    );
    let rewards: Vec<Option<f64>> = (trajectories[0].turns())
        .flat_map(|turn| turn.feedback.iter().map(|heard| heard.step_reward))
        .collect();
    assert_eq!(rewards, [Some(0.25), Some(1.0)]);
    assert!(trajectories[0].verdict.as_ref().expect("judged").success);
}

#[tokio::test]
async fn tools_that_change_are_told_as_they_were_sampled_or_rendered_anew() {
    let host = host();
    let script: &[String] = &[
        calls(&[("open_door", json!({}))]),
        calls(&[("secret", json!({}))]),
    ];
    for (history, sequences) in [("as-sampled", 1), ("template", 2)] {
        let (trajectories, _, dialogue) =
            play(&host, history, task(json!({}), None, json!({})), &[script]).await;
        let trajectory = &trajectories[0];
        assert_eq!(trajectory.finish, Finish::Terminated, "{history}");
        assert_eq!(trajectory.sequences.len(), sequences, "{history}");
        let last = trajectory.sequences.last().expect("there is one");
        let text = dialogue
            .tokenizer()
            .decode(&last.masked().expect("sampled").ids);
        let told = text.contains("The tools have changed. No longer there: open_door. New:");
        assert_eq!(told, history == "as-sampled", "{history}: {text}");
        assert!(text.contains("secret"), "{history}: {text}");
        assert!(
            outcomes(trajectory).iter().all(|(ended, _)| *ended == "ok"),
            "{history}"
        );
    }
}

#[tokio::test]
async fn an_environment_that_breaks_costs_its_own_trajectory() {
    let host = host();
    let trap = calls(&[("trap", json!({}))]);
    let good = calls(&[("add", json!({"by": 3}))]);
    let (trajectories, scores, _) = play(
        &host,
        "as-sampled",
        task(json!({}), None, json!({})),
        &[
            &[trap.clone(), trap.clone(), "end".into()],
            &[trap, good.clone(), "end".into()],
            &[good, "end".into()],
        ],
    )
    .await;
    assert_eq!(trajectories[0].finish, Finish::Aborted);
    assert!(scores[0].is_err(), "it is excluded, not scored 0");
    for index in [1, 2] {
        let score = scores[index].as_ref().expect("graded");
        assert!(score.success, "{index}");
    }
}

#[tokio::test]
async fn an_environment_that_does_not_open_excludes_its_trajectories() {
    let host = host();
    let (trajectories, scores, _) = play(
        &host,
        "as-sampled",
        task(json!({"open": "trap"}), None, json!({})),
        &[&["end".into()], &["end".into()]],
    )
    .await;
    for (trajectory, score) in trajectories.iter().zip(&scores) {
        assert_eq!(trajectory.finish, Finish::Aborted);
        let why = trajectory.excluded.as_deref().expect("it says why");
        assert!(
            why.starts_with("environment `counter` broke while it opened the task: "),
            "{why}"
        );
        assert!(score.is_err());
    }
}

#[tokio::test]
async fn tools_of_plugins_stand_beside_those_of_the_environment_where_a_task_names_them() {
    let host = host();
    let both = calls(&[
        ("calculate", json!({"expression": "1+2"})),
        ("add", json!({"by": 3})),
    ]);
    let held_out = calls(&[("draw", json!({}))]);
    let (trajectories, ..) = play(
        &host,
        "as-sampled",
        task(json!({}), Some(&["add", "calculate"]), json!({})),
        &[&[both, held_out, "end".into()]],
    )
    .await;
    let names: Vec<&str> = trajectories[0]
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(names, ["add", "calculate"]);
    let ended: Vec<_> = outcomes(&trajectories[0]);
    assert_eq!(ended.len(), 2, "a tool that is held out cannot be called");
    assert_eq!((ended[0].1, ended[1].1.is_some()), (None, true));
}

#[tokio::test]
async fn a_row_renames_and_holds_out_and_rewards_read_the_authors_names() {
    let host = host();
    let row = json!({"shown_tools": {"rename": {"add": "plus"}, "hold_out": ["show"], "permute_parameters": true}});
    let (trajectories, scores, _) = play(
        &host,
        "as-sampled",
        task(json!({}), None, row),
        &[&[calls(&[("plus", json!({"by": 3}))]), "end".into()]],
    )
    .await;
    let names: Vec<&str> = trajectories[0]
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert!(names.contains(&"plus") && !names.contains(&"add") && !names.contains(&"show"));
    assert!(scores[0].as_ref().expect("graded").success);
}

#[tokio::test]
async fn a_row_renames_parameters_and_the_environment_and_rewards_get_the_authors_names() {
    let host = host();
    let row = json!({"shown_tools": {"rename": {"add": "plus"}, "rename_parameters": {"add": {"by": "zork"}}}});
    let (trajectories, scores, _) = play(
        &host,
        "as-sampled",
        task(json!({}), None, row),
        &[&[
            calls(&[("plus", json!({"zork": "three"}))]),
            calls(&[("plus", json!({"zork": 3}))]),
            "end".into(),
        ]],
    )
    .await;
    let tools = &trajectories[0].tools;
    let plus = tools.iter().find(|tool| tool.name == "plus");
    let schema = &plus.expect("it is offered").input_schema;
    assert!(!schema["properties"]["zork"].is_null() && schema["properties"]["by"].is_null());
    let ended: Vec<&str> = outcomes(&trajectories[0]).iter().map(|one| one.0).collect();
    assert_eq!(ended, ["invalid-arguments", "ok"]);
    // The message about the wrong argument names it as the model does.
    let heard = trajectories[0]
        .outcomes()
        .next()
        .and_then(|one| one.observation.as_ref());
    let heard = json!(heard.expect("the model reads why")).to_string();
    assert!(heard.contains("zork") && !heard.contains("`by`"), "{heard}");
    assert!(scores[0].as_ref().expect("graded").success);
}
