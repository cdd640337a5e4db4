//! Checks an environment's promises on its own scenarios, for `env check`.
//!
//! Each scenario is played in two sessions side by side, by trajectories with different names. After every call, both
//! must show the same, give the same reward, offer the same tools and be in the same state. A third session, restored
//! from the first one's snapshot, must be in that state too, and must show the same for the next call. Asking for
//! state, snapshot or verdict must change nothing. At the end, the state must be the one that the scenario expects. A
//! scenario that does not open is a problem of its own.
//!
//! Then every tool is called with generated arguments that its schema allows. It must not break, and its results must
//! fit the output schema that it declares.

mod generate;

use std::collections::{BTreeMap, BTreeSet};

use rlf_dialogue::message::{Content, plain_text};
use rlf_dialogue::tool::{CallOutcome, Ended, ToolCall, ToolDefinition};
use rlf_plugins::arguments::canonical_json;
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::python_environment::Scenario;
use rlf_plugins::schema::ToolSchema;
use rlf_plugins::turn::TurnContext;
use rlf_sandbox::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};

use self::generate::Generator;
use crate::difference::difference;
use crate::environments::Environments;
use crate::error::OpenError;
use crate::error::SessionError;
use crate::live::LiveSession;
use crate::loader::list_scenarios;
use crate::request::{SessionOrigin, Time};
use crate::session::EnvironmentSession;
use crate::slot::state_hash;

/// The finding for one scenario or one tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The scenario's id, or the tool's name.
    pub name: String,
    /// Number of calls made.
    pub calls: usize,
    /// Number of calls that failed, as reported by the environment.
    pub failed: usize,
    /// Promises that were broken.
    pub problems: Vec<String>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckReport {
    /// One finding for each scenario.
    pub scenarios: Vec<Finding>,
    /// One finding for each tool that any scenario offers, called with generated arguments.
    pub tools: Vec<Finding>,
}

impl CheckReport {
    /// True if every promise was kept.
    pub fn is_sound(&self) -> bool {
        self.scenarios
            .iter()
            .chain(&self.tools)
            .all(|finding| finding.problems.is_empty())
    }
}

impl Environments {
    /// The scenarios that come with an environment.
    pub fn scenarios<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Scenario>, OpenError>> {
        Box::pin(async move {
            let plugin = self.plugin(name)?;
            let broke = |reason: String| OpenError::Broke {
                environment: name.to_owned(),
                reason,
            };
            if plugin.kind() == PluginKind::Environment {
                let listed = list_scenarios(plugin).await;
                let listed = self.served(name, listed.map_err(SessionError::from))?;
                return listed
                    .into_iter()
                    .map(|scenario| {
                        let id = scenario.id;
                        let json = |text: &str| {
                            rlf_json::from_str::<Value>(text).map_err(|error| {
                                broke(format!("scenario `{id}` is no JSON: {error}"))
                            })
                        };
                        Ok(Scenario {
                            task: json(&scenario.task)?,
                            seed: scenario.seed,
                            calls: scenario
                                .calls
                                .iter()
                                .map(|(name, arguments)| Ok((name.clone(), json(arguments)?)))
                                .collect::<Result<_, OpenError>>()?,
                            expect: Some(json(&scenario.expect)?),
                            id,
                        })
                    })
                    .collect();
            }
            let origin = SessionOrigin::Open {
                task: "{}".into(),
                seed: 0,
            };
            let text = match LiveSession::begin(plugin, origin, "scenarios").await {
                Ok((LiveSession::Python(mut session), _)) => {
                    session.scenarios(Time::for_plugin(plugin)).await
                }
                Ok((LiveSession::Component(_), _)) => return Ok(Vec::new()),
                Err(error) => Err(error),
            };
            let text = self.served(name, text)?;
            rlf_json::from_str(&text).map_err(|error| broke(format!("its scenarios: {error}")))
        })
    }

    /// Checks the promises of the environment `name`. Each tool is called `inputs` times with generated arguments.
    pub fn check<'a>(
        &'a self,
        name: &'a str,
        inputs: usize,
    ) -> BoxFuture<'a, Result<CheckReport, OpenError>> {
        Box::pin(async move {
            let scenarios = self.scenarios(name).await?;
            let mut report = CheckReport {
                scenarios: Vec::new(),
                tools: Vec::new(),
            };
            // The values that scenarios pass, by parameter name: generated calls use them as well.
            let mut seen: BTreeMap<String, Vec<Value>> = BTreeMap::new();
            for scenario in &scenarios {
                for (key, value) in scenario
                    .calls
                    .iter()
                    .filter_map(|(_, a)| a.as_object())
                    .flatten()
                {
                    seen.entry(key.clone()).or_default().push(value.clone());
                }
            }
            for (number, scenario) in scenarios.iter().enumerate() {
                let mut check = Check {
                    environments: self,
                    name,
                    scenario,
                    problems: Vec::new(),
                    failed: 0,
                };
                if scenarios[..number]
                    .iter()
                    .any(|before| before.id == scenario.id)
                {
                    check.problem("another scenario has the same id");
                }
                if let Err(error) = check.play().await {
                    check.problem(error.to_string());
                }
                report.scenarios.push(Finding {
                    name: scenario.id.clone(),
                    calls: scenario.calls.len(),
                    failed: check.failed,
                    problems: check.problems,
                });
            }
            let mut tried: BTreeSet<String> = BTreeSet::new();
            let idle = self.scenarios_of_unused_servers(name, &scenarios)?;
            let played = scenarios.iter().map(|scenario| (scenario, true));
            for (scenario, is_played) in played.chain(idle.iter().map(|server| (server, false))) {
                let opened = self.open(name, &scenario.id, &scenario.task, scenario.seed);
                let session = match opened.await {
                    Ok(session) => session,
                    // The finding of a scenario that was played already has this error.
                    Err(_) if is_played => continue,
                    Err(error) => {
                        report.scenarios.push(Finding {
                            name: scenario.id.clone(),
                            calls: 0,
                            failed: 0,
                            problems: vec![error.to_string()],
                        });
                        continue;
                    }
                };
                let tools: Vec<ToolDefinition> = session.tools().cloned().collect();
                drop(session);
                for tool in tools {
                    if tried.insert(tool.name.clone()) {
                        let finding = self.try_tool(name, scenario, &tool, inputs, &seen).await?;
                        report.tools.push(finding);
                    }
                }
            }
            Ok(report)
        })
    }

    /// Scenarios for the servers of an environment in Python that no scenario uses, in their initial state.
    fn scenarios_of_unused_servers(
        &self,
        name: &str,
        scenarios: &[Scenario],
    ) -> Result<Vec<Scenario>, OpenError> {
        let servers = self.plugin(name)?.servers().unwrap_or_default();
        let is_used = |server: &String| {
            let mut tasks = scenarios.iter().map(|scenario| &scenario.task["servers"]);
            tasks.any(|servers| servers.get(server).is_some())
        };
        let unused = servers.iter().filter(|server| !is_used(server));
        Ok(unused
            .map(|server| Scenario {
                task: json!({ "servers": { server.as_str(): null } }),
                id: server.clone(),
                seed: 0,
                calls: Vec::new(),
                expect: None,
            })
            .collect())
    }

    /// Calls a tool with generated arguments, each time in a fresh session.
    async fn try_tool(
        &self,
        name: &str,
        scenario: &Scenario,
        tool: &ToolDefinition,
        inputs: usize,
        seen: &BTreeMap<String, Vec<Value>>,
    ) -> Result<Finding, OpenError> {
        let mut finding = Finding {
            name: tool.name.clone(),
            calls: 0,
            failed: 0,
            problems: Vec::new(),
        };
        let schema = ToolSchema::parse(&tool.input_schema.to_string()).ok();
        let output = tool
            .output_schema
            .as_ref()
            .and_then(|schema| jsonschema::validator_for(schema).ok());
        let mut generator = Generator::new(&tool.input_schema, seen, &tool.name);
        for number in 0..inputs {
            let arguments = generator.draw();
            let fits = schema
                .as_ref()
                .is_none_or(|schema| schema.accepts(&arguments));
            if !fits {
                continue;
            }
            let mut session = self
                .open(name, &tool.name, &scenario.task, scenario.seed)
                .await?;
            let outcome = act(&mut session, "check", number, &tool.name, &arguments).await;
            finding.calls += 1;
            finding.failed += usize::from(outcome.ended == Ended::Failed);
            if let Some(problem) = broken(&outcome) {
                finding.problems.push(format!("{arguments}: {problem}"));
                if finding.problems.len() >= 3 {
                    break;
                }
                continue;
            }
            let structured = outcome.observation.iter().filter(|seen| !seen.failed);
            let parts = structured.flat_map(|seen| &seen.content);
            for part in parts {
                if let (Content::Structured(value), Some(output)) = (part, &output)
                    && !output.is_valid(value)
                {
                    finding.problems.push(format!(
                        "{arguments}: it returned {value}, which its output schema does not allow"
                    ));
                }
            }
        }
        Ok(finding)
    }
}

/// One scenario that is being played.
struct Check<'a> {
    environments: &'a Environments,
    name: &'a str,
    scenario: &'a Scenario,
    problems: Vec<String>,
    failed: usize,
}

impl Check<'_> {
    async fn open(&self) -> Result<EnvironmentSession, OpenError> {
        let Scenario { id, task, seed, .. } = self.scenario;
        self.environments.open(self.name, id, task, *seed).await
    }

    async fn play(&mut self) -> Result<(), OpenError> {
        let (mut first, mut second) = (self.open().await?, self.open().await?);
        if first.messages() != second.messages() || !first.tools().eq(second.tools()) {
            self.problem("the same task and seed open with other messages or tools");
        }
        let mut restored = None;
        for (number, (tool, arguments)) in self.scenario.calls.iter().enumerate() {
            let place = format!("call {} ({tool})", number + 1);
            if first.tools().all(|offered| offered.name != *tool) {
                self.problem(format!("{place}: there is no such tool"));
                return Ok(());
            }
            let outcome = act(&mut first, "check", number, tool, arguments).await;
            if let Some(problem) = broken(&outcome) {
                self.problem(format!("{place}: {problem}"));
                return Ok(());
            }
            self.failed += usize::from(outcome.ended != Ended::Ok);
            let again = act(&mut second, "check-again", number, tool, arguments).await;
            let what = "the same seed gives other bytes";
            self.same(&place, what, (&first, &outcome), (&second, &again));
            if let Some(mut restored) = restored.take() {
                let again = act(&mut restored, "check-restored", number, tool, arguments).await;
                let what = "a session restored from a snapshot goes on otherwise";
                self.same(&place, what, (&first, &outcome), (&restored, &again));
            }
            if first.is_terminated() {
                break;
            }
            restored = self.keeps_still(&place, &first).await?;
        }
        self.ends_as_expected(&first).await;
        Ok(())
    }

    fn same(
        &mut self,
        place: &str,
        what: &str,
        (one_session, one): (&EnvironmentSession, &CallOutcome),
        (other_session, other): (&EnvironmentSession, &CallOutcome),
    ) {
        let shown = |outcome: &CallOutcome| {
            let observation = outcome.observation.as_ref();
            observation.map_or_else(String::new, |seen| plain_text(&seen.content))
        };
        let (first, second) = (shown(one), shown(other));
        if first != second || one.ended != other.ended {
            self.problem(format!(
                "{place}: {what}: {:?} and {:?}",
                brief(&first),
                brief(&second)
            ));
            return;
        }
        for (differ, which) in [
            (one.state != other.state, "states"),
            (one.step_reward != other.step_reward, "rewards"),
            (!one_session.tools().eq(other_session.tools()), "tools"),
            (
                one_session.is_terminated() != other_session.is_terminated(),
                "ends of the episode",
            ),
        ] {
            if differ {
                self.problem(format!("{place}: {what}: the {which} differ"));
            }
        }
    }

    /// Checks that questions change nothing, and that a snapshot holds the whole session. Returns the session restored
    /// from the snapshot.
    async fn keeps_still(
        &mut self,
        place: &str,
        session: &EnvironmentSession,
    ) -> Result<Option<EnvironmentSession>, OpenError> {
        let state = match session.state().await {
            Ok(state) => state,
            Err(why) => {
                self.problem(format!("{place}: it does not tell its state: {why}"));
                return Ok(None);
            }
        };
        let snapshot = match session.snapshot().await {
            Ok(snapshot) => snapshot,
            Err(why) => {
                self.problem(format!("{place}: it gives no snapshot: {why}"));
                return Ok(None);
            }
        };
        // The verdict does not matter: the reference may be another environment's kind of reference.
        for reference in [Value::Null, json!({ "state": self.scenario.expect })] {
            let _ = session.verify(None, &reference).await;
        }
        match session.state().await {
            Ok(after) if after == state => {}
            _ => self.problem(format!(
                "{place}: asking for state, snapshot or verdict changes it"
            )),
        }
        let mut restored = self.open().await?;
        if let Err(error) = restored.restore(&snapshot).await {
            self.problem(format!("{place}: {error}"));
            return Ok(None);
        }
        match restored.state().await {
            Ok(other) if other == state => Ok(Some(restored)),
            Ok(_) => {
                self.problem(format!(
                    "{place}: a session restored from its snapshot has another state"
                ));
                Ok(None)
            }
            Err(why) => {
                self.problem(format!(
                    "{place}: restored, it does not tell its state: {why}"
                ));
                Ok(None)
            }
        }
    }

    async fn ends_as_expected(&mut self, session: &EnvironmentSession) {
        let state = match session.state().await {
            Ok(state) => state,
            Err(why) => {
                return self.problem(format!("in the end it does not tell its state: {why}"));
            }
        };
        let Ok(found) = rlf_json::from_str::<Value>(&state) else {
            return self.problem("its state is no JSON");
        };
        let Some(expected) = &self.scenario.expect else {
            return self.problem(format!(
                "it has no `expect`; put there the state after its calls, if it is right: {state}"
            ));
        };
        let (is, wanted) = (canonical_json(&found), canonical_json(expected));
        if state_hash(&is) != state_hash(&wanted) {
            let differs = difference(expected, &found).join("; ");
            self.problem(format!(
                "it ends in another state than `expect`, from that to what it is: {}",
                brief(if differs.is_empty() { &is } else { &differs })
            ));
        }
    }

    fn problem(&mut self, what: impl Into<String>) {
        self.problems.push(what.into());
    }
}

/// The fault of the environment in an outcome, if any. Mistakes of the model do not count.
fn broken(outcome: &CallOutcome) -> Option<String> {
    match outcome.ended {
        Ended::Ok | Ended::Failed | Ended::InvalidArguments => None,
        ended => {
            let detail = outcome.detail.as_deref().unwrap_or_default();
            let first = detail.lines().next().unwrap_or_default();
            Some(format!("it ended as {}: {first}", ended.as_str()))
        }
    }
}

/// Calls a tool as the only call of a turn.
async fn act(
    session: &mut EnvironmentSession,
    trajectory: &str,
    number: usize,
    tool: &str,
    arguments: &Value,
) -> CallOutcome {
    let call = ToolCall {
        call_id: format!("{trajectory}/{number}/0"),
        name: tool.to_owned(),
        arguments: arguments.clone(),
    };
    let turn = TurnContext {
        trajectory_id: trajectory.to_owned(),
        turn: u32::try_from(number).unwrap_or(u32::MAX),
        seed: 0,
    };
    session.call(call, &turn).await
}

fn brief(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(300).collect();
    if chars.next().is_some() {
        start + ".."
    } else {
        start
    }
}
