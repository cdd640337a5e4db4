//! The loaded reward and interpreter.

use crate::KINDS;
use std::collections::BTreeMap;

use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::score::{Graded, Score};
use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_dialogue::trajectory::{Finish, Trajectory};
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::registry::Registry;
use rlf_rewards::grading::Grading;
use rlf_rewards::reward_stack::RewardStack;
use rlf_sandbox::{ComponentInfo, Sandbox, SandboxConfig};
use rlf_tools::tool_manager::{ToolManager, ToolManagerConfig};
use serde_json::Value;
use xtask::guests::Family;
use xtask::project::Project;

/// A reward that grades groups of answers.
pub(crate) struct Bench {
    stack: RewardStack,
}

impl Bench {
    /// Adds these lines to the reward's grants.
    pub(crate) fn new(grants: &str) -> Self {
        let project = Project::find().expect("tests run inside a checkout");
        let plugins = xtask::plugins::ready(&project, Family::FirstParty)
            .unwrap_or_else(|error| panic!("{error:#}"));
        let component = plugins.join("reward-code-tests/reward-code-tests.wasm");
        let component = std::fs::read(component).expect("it is built");
        let hash = ComponentInfo::read(&component).expect("a component").hash;
        let mut text = format!(
            "[python]\nprograms.time_ms = 60_000\n\
             [tests]\nplugin = \"reward-code-tests\"\nhash = \"{hash}\"\ngrants = [\"execute\"]\n\
             execute = [\"python\"]\nlimits.wall_ms = 200_000\nlimits.cpu_ms = 60_000\n{grants}"
        );
        for (key, value) in [
            ("limits.nested_calls", "1000"),
            ("config.programs", "1000"),
            ("config.code", "\"answer\""),
        ] {
            if !grants.contains(key) {
                text.extend([key, " = ", value, "\n"]);
            }
        }
        let grants_by_name: BTreeMap<String, PluginGrants> =
            rlf_config::parse(&text, "grants.toml").expect("well written");
        let sandbox = Sandbox::new(&SandboxConfig {
            cache: Some(rlf_tests::component_cache(&project)),
            ..SandboxConfig::default()
        })
        .expect("the machine can hold a sandbox");
        let wanted = |name: &str| ["tests", "python"].contains(&name);
        let registry = Registry::load_where(&plugins, &grants_by_name, KINDS, &sandbox, wanted);
        assert_eq!(registry.problems(), []);
        let tools =
            ToolManager::new(&registry, &ToolManagerConfig::default()).expect("no tools clash");
        let stack = "success = \"tests.all >= 1\"\n[[stack]]\nplugin = \"tests\"\nweights = {score = 1.0}\n";
        let stack = rlf_config::parse(stack, "rewards.toml").expect("well written");
        let stack = RewardStack::new(&registry, &stack).expect("it is there");
        Self {
            stack: stack.with_tools(&tools),
        }
    }

    /// Grades a group of answers to one task.
    pub(crate) async fn try_grade(&self, reference: &Value, answers: &[&str]) -> Vec<Graded> {
        let task = Task {
            id: "q".into(),
            source: "test".into(),
            prompt: vec![Message::text(Role::User, "?")],
            tools: None,
            reference: reference.clone(),
            environment: None,
            setup: Value::Null,
            extra: serde_json::Map::new(),
        };
        let trajectory = |(number, answer): (usize, &&str)| Trajectory {
            id: format!("q/{number}"),
            task: "q".into(),
            tools: vec![],
            events: vec![],
            sequences: vec![],
            answer: Some((*answer).to_owned()),
            finish: Finish::Answered,
            excluded: None,
            closed_turns: 0,
            final_state: None,
            verdict: None,
            unjudged: None,
        };
        let group: Vec<Trajectory> = answers.iter().enumerate().map(trajectory).collect();
        let grading = Grading {
            split: Split::Train,
            step: 0,
            steps: 1,
            seed: 1,
        };
        self.stack.grade(&task, &group, &grading).await
    }

    /// Grades answers; fails the test if one is excluded.
    pub(crate) async fn grade(&self, reference: &Value, answers: &[&str]) -> Vec<Score> {
        let graded = self.try_grade(reference, answers).await;
        graded
            .into_iter()
            .zip(answers)
            .map(|(graded, answer)| {
                graded.unwrap_or_else(|excluded| panic!("{excluded}\n{answer}"))
            })
            .collect()
    }
}

/// A term.
pub(crate) fn term(score: &Score, name: &str) -> f64 {
    find(&score.terms, name)
}

/// A metric.
pub(crate) fn metric(score: &Score, name: &str) -> f64 {
    find(&score.metrics, name)
}

fn find(pairs: &[(String, f64)], name: &str) -> f64 {
    let name = format!("tests.{name}");
    let found = pairs.iter().find(|(other, _)| *other == name);
    found.unwrap_or_else(|| panic!("no {name} in {pairs:?}")).1
}
