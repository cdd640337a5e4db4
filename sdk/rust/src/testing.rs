//! Running a plugin natively, in the author's own tests.
//!
//! Data, logs and calls are per thread, and each test has its own thread.

mod environment;
mod scenarios;

pub use environment::{Session, init_environment, open};
pub use scenarios::check_scenarios;

pub use crate::stand_in::{
    answer_questions_with, answer_with, bind, execute_with, invoke_with, logged,
};

use serde_json::Value;

use crate::{
    CallContext, CallResult, Content, Ended, Error, Event, Finish, Grading, MalformedCall, Message,
    ModelTurn, Observation, RewardPlugin, Role, Score, Task, ToolCall, ToolPlugin, Trajectory,
};

/// Runs a tool plugin's `init` with this configuration.
pub fn init<P: ToolPlugin>(config: Value) -> Result<(), Error> {
    P::init(&config.to_string())
}

/// Calls a tool by its name with arguments, as the host would; the seed of the call is 0.
pub fn call<P: ToolPlugin>(name: &str, arguments: Value) -> Result<Observation, Error> {
    P::call(name, &arguments.to_string(), &context())
}

/// The context of the calls that [`call`] makes.
pub fn context() -> CallContext {
    CallContext {
        call_id: "test/0/0".to_owned(),
        attempt: 0,
        trajectory_id: "test".to_owned(),
        turn: 0,
        seed: 0,
        budget_ms: 1_000,
        extra: Vec::new(),
    }
}

/// The text parts of an observation, structured ones as their JSON.
pub fn text(observation: &Observation) -> String {
    let part = |content: &Content| match content {
        Content::Text(text) | Content::Structured(text) => text.clone(),
        Content::Image(blob) | Content::Audio(blob) | Content::File(blob) => {
            format!("[{}, {} bytes]", blob.media_type, blob.data.len())
        }
    };
    observation.content.iter().map(part).collect()
}

/// Runs a reward's `init` with this configuration.
pub fn init_reward<P: RewardPlugin>(config: Value) -> Result<(), Error> {
    P::init(&config.to_string())
}

/// Grades one trajectory as the host would: a group of one.
pub fn grade<P: RewardPlugin>(task: &Task, trajectory: Trajectory) -> Result<Score, Error> {
    let grading = Grading {
        split: "test".to_owned(),
        step: 0,
        steps: 0,
        seed: 0,
    };
    let mut scores = P::grade(task, &[trajectory], &grading)?;
    match (scores.pop(), scores.is_empty()) {
        (Some(score), true) => score,
        _ => Err(Error::Internal(
            "a group of one got no score, or several".to_owned(),
        )),
    }
}

impl Score {
    /// The value of a term.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.terms
            .iter()
            .find(|term| term.name == name)
            .map(|term| term.value)
    }
}

/// A task with this reference.
pub fn task(reference: Value) -> Task {
    Task {
        id: "task".to_owned(),
        source: "test".to_owned(),
        prompt: vec![Message {
            role: Role::User,
            content: vec![Content::Text("?".to_owned())],
        }],
        reference: reference.to_string(),
        extra: Vec::new(),
    }
}

/// A trajectory without events; it ends as `max-turns` until [`Trajectory::answered`].
pub fn trajectory() -> Trajectory {
    Trajectory {
        id: "test".to_owned(),
        tools: Vec::new(),
        events: Vec::new(),
        answer: None,
        finish: Finish::MaxTurns,
        final_state: None,
        verdict: None,
        extra: Vec::new(),
    }
}

fn turn(visible: &str) -> ModelTurn {
    ModelTurn {
        text: visible.to_owned(),
        reasoning: None,
        visible: visible.to_owned(),
        calls: Vec::new(),
        malformed: Vec::new(),
        tokens: 1,
    }
}

/// Builders for trajectories in tests.
impl Trajectory {
    /// Adds a turn that calls a tool, and the outcome of the call.
    #[must_use]
    pub fn called(mut self, name: &str, arguments: Value, ended: Ended) -> Self {
        let call_id = format!("test/{}/0", self.turns().count());
        let call = ToolCall {
            call_id: call_id.clone(),
            name: name.to_owned(),
            arguments: arguments.to_string(),
        };
        self.events.push(Event::Turn(ModelTurn {
            calls: vec![call],
            ..turn("")
        }));
        let failed = ended != Ended::Ok;
        let observation = Some(Observation {
            failed,
            ..Observation::text("observed")
        });
        self.events.push(Event::Outcome(CallResult {
            call_id,
            ended,
            observation,
            step_reward: None,
        }));
        self
    }

    /// Adds a turn with a call that could not be parsed.
    #[must_use]
    pub fn malformed(mut self, text: &str, diagnostic: &str) -> Self {
        let malformed = MalformedCall {
            text: text.to_owned(),
            diagnostic: diagnostic.to_owned(),
        };
        self.events.push(Event::Turn(ModelTurn {
            malformed: vec![malformed],
            ..turn("")
        }));
        self
    }

    /// Adds a turn of text only.
    #[must_use]
    pub fn said(mut self, text: &str) -> Self {
        self.events.push(Event::Turn(turn(text)));
        self
    }

    /// Adds a last turn that gives the answer.
    #[must_use]
    pub fn answered(mut self, answer: &str) -> Self {
        self.events.push(Event::Turn(turn(answer)));
        self.answer = Some(answer.to_owned());
        self.finish = Finish::Answered;
        self
    }
}
