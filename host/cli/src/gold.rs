//! Demonstrations from gold calls: a task that names the calls which solve it is demonstrated by making them, one a turn,
//! in its environment.

use std::sync::Arc;

use anyhow::{Context, bail};
use rlf_dialogue::config::AnswerRule;
use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::parser;
use rlf_dialogue::protocol::{Protocol, THINK_CLOSE, THINK_OPEN, Unwritable};
use rlf_dialogue::task::Task;
use rlf_dialogue::template::RenderInput;
use rlf_dialogue::turn::TurnOutcome;
use rlf_rollout::demonstrate::Demonstrator;
use rlf_rollout::shown_tools::Showing;
use rlf_rollout::user;
use serde_json::Value;

use crate::commands::data::gold_calls;

/// What is said when all calls are made.
const DONE: &str = "Done.";

/// Writes turns as the model of a run does: in its protocol, behind what the template's prompt for a turn begins.
#[derive(Debug, Clone)]
pub(crate) struct Pen {
    protocol: Protocol,
    rule: AnswerRule,
    /// What ends a think block that the prompt leaves open.
    before: &'static str,
    /// The tokenizer's added tokens that are more than white space.
    control: Vec<String>,
}

impl Pen {
    pub(crate) fn of(dialogue: &Dialogue) -> anyhow::Result<Self> {
        const ASKED: &str = "qzaskqz";
        let prompt = dialogue.template().render(&RenderInput {
            messages: &[Message::text(Role::User, ASKED)],
            tools: &[],
            enable_thinking: Some(dialogue.config().enable_thinking),
            add_generation_prompt: true,
        })?;
        let (_, turn) = prompt.rsplit_once(ASKED).unwrap_or_default();
        let thinks = turn.rfind(THINK_OPEN) > turn.rfind(THINK_CLOSE);
        let added = dialogue.tokenizer().added_tokens();
        Ok(Self {
            protocol: dialogue.protocol(),
            rule: dialogue.config().answer,
            before: if thinks { "</think>\n\n" } else { "" },
            control: added
                .map(|(_, token)| token.to_owned())
                .filter(|token| !token.trim().is_empty())
                .collect(),
        })
    }

    pub(crate) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// A turn that makes calls, all at once.
    pub(crate) fn calls(&self, calls: &[(&str, &Value)]) -> Result<String, Unwritable> {
        let control: Vec<&str> = self.control.iter().map(String::as_str).collect();
        let text = self.protocol.spec().write(calls, &control)?;
        Ok(self.behind_prompt(&text))
    }

    /// A turn that says `said` as the answer.
    pub(crate) fn answer(&self, said: &str) -> anyhow::Result<String> {
        if let Some(token) = self.control.iter().find(|token| said.contains(*token)) {
            bail!("its answer holds {token:?}, which is a control token of the model");
        }
        let text = match self.rule {
            AnswerRule::Tag => format!("<answer>{said}</answer>"),
            AnswerRule::Boxed => format!("\\boxed{{{said}}}"),
            AnswerRule::FinalTurn => said.to_owned(),
        };
        let parsed = parser::parse(&text, false, self.protocol.spec(), &[] as &[&str]);
        if parsed.visible() != text.trim() {
            bail!(
                "its answer {said:?} would be read as a call or as reasoning in the protocol {}",
                self.protocol.as_str()
            );
        }
        let read = TurnOutcome::of(&parsed, self.rule, true);
        if read != TurnOutcome::Answer(said.trim().to_owned()) {
            bail!("its answer {said:?} would not be read as that by `dialogue.answer`: {text:?}");
        }
        Ok(self.behind_prompt(&text))
    }

    /// A turn whose calls or answer are written already.
    pub(crate) fn behind_prompt(&self, text: &str) -> String {
        format!("{}{text}", self.before)
    }
}

/// A task's gold calls as turns, and the answer behind them.
#[derive(Debug, Clone)]
pub(crate) struct Gold {
    pub(crate) task: Arc<Task>,
    turns: Arc<[String]>,
}

impl Gold {
    /// None of a task that names no calls, or calls of tools that its model is not offered, or whose user a model plays: what
    /// they would be answered is nobody's to know. An error says why they cannot be written.
    pub(crate) fn of(
        task: &Arc<Task>,
        pen: &Pen,
        showing: &Showing,
    ) -> anyhow::Result<Option<Self>> {
        let calls = gold_calls(&task.reference)?;
        if calls.is_empty() || task.environment.is_none() || user::is_wanted(task) {
            return Ok(None);
        }
        let mut turns = Vec::with_capacity(calls.len() + 1);
        for (number, (name, arguments)) in calls.iter().enumerate() {
            let Some(shown) = showing.shown_name(name) else {
                return Ok(None);
            };
            let turn = pen.calls(&[(shown, arguments)]);
            turns.push(turn.with_context(|| format!("gold call {}", number + 1))?);
        }
        // What the answer has to contain, where the data set says it.
        let outputs = task.reference["outputs"].as_array();
        let outputs: Vec<String> = outputs
            .into_iter()
            .flatten()
            .map(|output| plain(output, "outputs"))
            .collect::<anyhow::Result<_>>()?;
        let said = match (&task.reference["answer"], outputs.as_slice()) {
            (Value::Null, []) => DONE.to_owned(),
            (Value::Null, outputs) => outputs.join(", "),
            (answer, _) => plain(answer, "answer")?,
        };
        turns.push(pen.answer(&said)?);
        Ok(Some(Self {
            task: task.clone(),
            turns: turns.into(),
        }))
    }

    /// Makes the calls.
    pub(crate) fn play(&self) -> GoldCalls {
        GoldCalls {
            turns: self.turns.clone(),
            next: 0,
        }
    }
}

/// What is said for a value of a reference.
fn plain(value: &Value, key: &str) -> anyhow::Result<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => bail!("its `{key}` has what is no text: {value}"),
    }
}

/// Says the turns of a [`Gold`], and its answer for as long as the episode goes on.
pub(crate) struct GoldCalls {
    turns: Arc<[String]>,
    next: usize,
}

impl Demonstrator for GoldCalls {
    fn next_turn(&mut self, _observations: &[String]) -> Result<String, String> {
        let turn = self.turns.get(self.next).or(self.turns.last());
        self.next += 1;
        turn.cloned().ok_or_else(|| "there is no turn".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use rlf_dialogue::bpe::BpeOptions;
    use rlf_dialogue::config::DialogueConfig;
    use rlf_dialogue::template::ChatTemplate;
    use rlf_dialogue::tokenizer::Tokenizer;
    use serde_json::json;

    use super::*;

    fn task(reference: &Value) -> Arc<Task> {
        serde_json::from_value(json!({
            "id": "t", "source": "s", "prompt": [], "reference": reference, "environment": "w",
        }))
        .unwrap()
    }

    fn pen(protocol: Protocol, rule: AnswerRule) -> Pen {
        let corpus = ["a call and an answer"].map(String::from).into_iter();
        let tokenizer = Tokenizer::train_bpe(corpus, &BpeOptions::default()).unwrap();
        let config = DialogueConfig {
            protocol: Some(protocol),
            answer: rule,
            ..DialogueConfig::default()
        };
        let template = ChatTemplate::small();
        Pen::of(&Dialogue::new(Arc::new(tokenizer), template, config, &[]).unwrap()).unwrap()
    }

    fn turns(task: &Arc<Task>, pen: &Pen, showing: &Showing) -> Vec<String> {
        let gold = Gold::of(task, pen, showing).unwrap().unwrap();
        let mut play = gold.play();
        gold.turns
            .iter()
            .map(|_| play.next_turn(&[]).unwrap())
            .collect()
    }

    #[test]
    fn gold_calls_are_made_one_a_turn_and_then_it_answers() {
        let row =
            task(&json!({"calls": [{"name": "f", "arguments": {"x": 1}}], "outputs": ["10", "a"]}));
        let written = |protocol, rule| turns(&row, &pen(protocol, rule), &Showing::default());
        assert_eq!(
            written(Protocol::Hermes, AnswerRule::FinalTurn),
            [
                "<tool_call>\n{\"name\":\"f\",\"arguments\":{\"x\":1}}\n</tool_call>",
                "10, a"
            ]
        );
        assert_eq!(
            written(Protocol::Llama31, AnswerRule::Tag),
            [
                "{\"name\":\"f\",\"parameters\":{\"x\":1}}",
                "<answer>10, a</answer>"
            ]
        );
    }

    #[test]
    fn a_think_block_that_the_prompt_opens_is_ended_first() {
        let row = task(&json!({"calls": [{"name": "f", "arguments": {}}]}));
        let thinking = Pen {
            before: "</think>\n\n",
            ..pen(Protocol::Hermes, AnswerRule::FinalTurn)
        };
        for turn in turns(&row, &thinking, &Showing::default()) {
            let parsed = parser::parse(&turn, true, Protocol::Hermes.spec(), &["f"]);
            assert_eq!(parsed.diagnostics().count(), 0, "{turn}");
            assert!(parsed.attempts().count() == 1 || parsed.visible() == DONE);
        }
    }

    #[test]
    fn calls_have_the_names_that_the_model_sees() {
        let row = task(&json!({"calls": [{"name": "f", "arguments": {}}]}));
        let pen = pen(Protocol::Hermes, AnswerRule::FinalTurn);
        let mut showing = Showing::default();
        showing.rename.insert("f".into(), "g".into());
        assert!(turns(&row, &pen, &showing)[0].contains("\"name\":\"g\""));
        showing.hold_out.insert("f".into());
        assert!(Gold::of(&row, &pen, &showing).unwrap().is_none());
    }

    #[test]
    fn a_task_without_calls_has_no_demonstration() {
        let pen = pen(Protocol::Hermes, AnswerRule::Tag);
        let has_none =
            |row: &Arc<Task>| Gold::of(row, &pen, &Showing::default()).unwrap().is_none();
        assert!(has_none(&task(&json!({"answer": "x"}))));
        let row = task(&json!({"calls": [{"name": "f", "arguments": {}}]}));
        assert!(!has_none(&row));
        let setup = json!({"user": "model", "instruction": "Buy tea."});
        let played = Task {
            setup,
            ..Task::clone(&row)
        };
        assert!(has_none(&Arc::new(played)));
    }

    #[test]
    fn what_the_protocol_cannot_say_is_an_error_that_names_it() {
        let why = |protocol, reference: Value| {
            let pen = pen(protocol, AnswerRule::FinalTurn);
            let error = Gold::of(&task(&reference), &pen, &Showing::default()).unwrap_err();
            format!("{error:#}")
        };
        let call = |arguments: Value| json!({"name": "f", "arguments": arguments});
        let second = json!({"calls": [call(json!({})), call(json!([1]))]});
        let error = why(Protocol::Hermes, second);
        assert!(error.starts_with("gold call 2: the arguments"), "{error}");
        let answer =
            json!({"calls": [call(json!({}))], "answer": "{\"name\": \"f\", \"parameters\": {}}"});
        let error = why(Protocol::Llama31, answer);
        assert!(error.contains("read as a call"), "{error}");
        let braces = json!({"calls": [call(json!({}))], "answer": "a}b"});
        let boxed = pen(Protocol::Hermes, AnswerRule::Boxed);
        let error = Gold::of(&task(&braces), &boxed, &Showing::default()).unwrap_err();
        assert!(error.to_string().contains("dialogue.answer"), "{error}");
        let answer = json!({"calls": [call(json!({}))], "answer": "so <|end|>"});
        let error = why(Protocol::Hermes, answer);
        assert!(error.contains("control token"), "{error}");
    }
}
