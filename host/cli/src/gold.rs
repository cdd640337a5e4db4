//! Demonstrations from gold calls: a task that names the calls which solve it is demonstrated by making them, one a turn,
//! in its environment.

use std::sync::Arc;

use anyhow::{Context, bail};
use rlf_dialogue::config::AnswerRule;
use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::episode::Episode;
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::parser;
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::ToolCall;
use rlf_dialogue::turn::TurnOutcome;
use rlf_rollout::demonstrate::Demonstrator;
use rlf_rollout::shown_tools::Showing;
use rlf_rollout::user;
use serde_json::{Value, json};

use crate::commands::data::gold_calls;

/// What is said when all calls are made.
const DONE: &str = "Done.";

/// A turn that makes calls, all at once.
pub(crate) fn calling(calls: Vec<ToolCall>) -> Message {
    Message {
        tool_calls: calls,
        ..Message::text(Role::Assistant, "")
    }
}

/// A turn that says `said` as the answer.
pub(crate) fn answering(said: &str, rule: AnswerRule) -> Message {
    let text = match rule {
        AnswerRule::Tag => format!("<answer>{said}</answer>"),
        AnswerRule::Boxed => format!("\\boxed{{{said}}}"),
        AnswerRule::FinalTurn => said.to_owned(),
    };
    Message::text(Role::Assistant, text)
}

/// Tries in a conversation of its own, before a run begins, whether its model could write a turn.
pub(crate) struct Pen {
    dialogue: Arc<Dialogue>,
    trial: Episode,
}

impl Pen {
    pub(crate) fn of(dialogue: &Arc<Dialogue>) -> anyhow::Result<Self> {
        let asked: Task = serde_json::from_value(json!({
            "id": "trial", "source": "trial", "reference": null,
            "prompt": [{"role": "user", "content": "?"}],
        }))?;
        Ok(Self {
            dialogue: dialogue.clone(),
            trial: Episode::start(dialogue, "trial".into(), &asked, Vec::new())?,
        })
    }

    fn call(&self, name: &str, arguments: &Value) -> anyhow::Result<Message> {
        let turn = calling(vec![ToolCall {
            call_id: String::new(),
            name: name.to_owned(),
            arguments: arguments.clone(),
        }]);
        self.trial.write_turn(&turn)?;
        Ok(turn)
    }

    fn answer(&self, said: &str) -> anyhow::Result<Message> {
        let rule = self.dialogue.config().answer;
        let turn = answering(said, rule);
        self.trial
            .write_turn(&turn)
            .with_context(|| format!("its answer {said:?}"))?;
        let text = turn.plain_text();
        let protocol = self.dialogue.protocol().spec();
        let parsed = parser::parse(&text, false, protocol, &[] as &[&str]);
        let read = TurnOutcome::of(&parsed, rule, true);
        if read != TurnOutcome::Answer(said.trim().to_owned()) {
            bail!("its answer {said:?} would not be read as that by `dialogue.answer`: {text:?}");
        }
        Ok(turn)
    }
}

/// A task's gold calls as turns, and the answer behind them.
#[derive(Debug, Clone)]
pub(crate) struct Gold {
    pub(crate) task: Arc<Task>,
    turns: Arc<[Message]>,
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
            let turn = pen.call(shown, arguments);
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
    turns: Arc<[Message]>,
    next: usize,
}

impl Demonstrator for GoldCalls {
    fn next_turn(&mut self, episode: &Episode, _observations: &[String]) -> Result<String, String> {
        let turn = self.turns.get(self.next).or(self.turns.last());
        self.next += 1;
        let turn = turn.ok_or("there is no turn")?;
        episode.write_turn(turn).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use rlf_dialogue::bpe::BpeOptions;
    use rlf_dialogue::config::DialogueConfig;
    use rlf_dialogue::protocol::Protocol;
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

    const HERMES: &str = rlf_dialogue::template::small::SOURCE;
    const BARE: &str = include_str!("../../dialogue/tests/fixtures/bare-calls.jinja");

    fn pen(template: &str, protocol: Protocol, answer: AnswerRule) -> Pen {
        let corpus = ["a call and an answer"].map(String::from).into_iter();
        let tokenizer = Tokenizer::train_bpe(corpus, &BpeOptions::default()).unwrap();
        let template = ChatTemplate::from_source(template, "test.jinja").unwrap();
        let config = DialogueConfig {
            protocol: Some(protocol),
            answer,
            ..DialogueConfig::default()
        };
        let dialogue = Dialogue::new(Arc::new(tokenizer), template, config, &[]).unwrap();
        Pen::of(&Arc::new(dialogue)).unwrap()
    }

    fn hermes(answer: AnswerRule) -> Pen {
        pen(HERMES, Protocol::Hermes, answer)
    }

    fn turns(task: &Arc<Task>, pen: &Pen, showing: &Showing) -> Vec<String> {
        let gold = Gold::of(task, pen, showing).unwrap().unwrap();
        let mut play = gold.play();
        gold.turns
            .iter()
            .map(|_| play.next_turn(&pen.trial, &[]).unwrap())
            .collect()
    }

    #[test]
    fn gold_calls_are_made_one_a_turn_and_then_it_answers() {
        let row =
            task(&json!({"calls": [{"name": "f", "arguments": {"x": 1}}], "outputs": ["10", "a"]}));
        let written = |pen: &Pen| turns(&row, pen, &Showing::default());
        assert_eq!(
            written(&hermes(AnswerRule::FinalTurn)),
            [
                "<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":1}}</tool_call>",
                "10, a"
            ]
        );
        assert_eq!(
            written(&pen(BARE, Protocol::Llama31, AnswerRule::Tag)),
            [
                "{\"name\": \"f\", \"parameters\": {\"x\": 1}}",
                "<answer>10, a</answer>"
            ]
        );
    }

    #[test]
    fn a_think_block_that_the_prompt_opens_is_ended_first() {
        let row = task(&json!({"calls": [{"name": "f", "arguments": {}}]}));
        let thinks = HERMES.replace("{{- '<|assistant|>' }}", "{{- '<|assistant|><think>\\n' }}");
        let thinking = pen(&thinks, Protocol::Hermes, AnswerRule::FinalTurn);
        let call = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
        assert_eq!(
            turns(&row, &thinking, &Showing::default()),
            [call, DONE].map(|said| format!("</think>\n\n{said}"))
        );
    }

    #[test]
    fn calls_have_the_names_that_the_model_sees() {
        let row = task(&json!({"calls": [{"name": "f", "arguments": {}}]}));
        let pen = hermes(AnswerRule::FinalTurn);
        let mut showing = Showing::default();
        showing.rename.insert("f".into(), "g".into());
        assert!(turns(&row, &pen, &showing)[0].contains("\"name\":\"g\""));
        showing.hold_out.insert("f".into());
        assert!(Gold::of(&row, &pen, &showing).unwrap().is_none());
    }

    #[test]
    fn a_task_without_calls_has_no_demonstration() {
        let pen = hermes(AnswerRule::Tag);
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
    fn what_no_model_could_write_is_an_error_that_names_it() {
        let why = |pen: &Pen, reference: Value| {
            let error = Gold::of(&task(&reference), pen, &Showing::default()).unwrap_err();
            format!("{error:#}")
        };
        let call = |arguments: Value| json!({"name": "f", "arguments": arguments});
        let ending = |answer: &str| json!({"calls": [call(json!({}))], "answer": answer});
        let plain = hermes(AnswerRule::FinalTurn);
        let bare = pen(BARE, Protocol::Llama31, AnswerRule::FinalTurn);
        let mut deep = json!(1);
        for _ in 0..127 {
            deep = json!([deep]);
        }
        let deep = json!({ "calls": [call(json!({ "x": deep }))] });
        for (pen, reference, says) in [
            (
                &plain,
                json!({"calls": [call(json!({})), call(json!([1]))]}),
                "gold call 2: read back",
            ),
            (&plain, deep, "recursion limit"),
            (
                &plain,
                json!({"calls": [call(json!({"x": "so <|end|> there"}))]}),
                "control token",
            ),
            (&plain, ending("so <|end|>"), "control token"),
            (
                &bare,
                ending("{\"name\": \"f\", \"parameters\": {}}"),
                "its calls are others",
            ),
            (&hermes(AnswerRule::Boxed), ending("a}b"), "dialogue.answer"),
            // Two that do not belong together.
            (
                &pen(HERMES, Protocol::Llama31, AnswerRule::Tag),
                ending("a"),
                "dialogue.protocol = \"llama-3.1\"",
            ),
        ] {
            let error = why(pen, reference);
            assert!(error.contains(says), "{error}");
        }
    }
}
