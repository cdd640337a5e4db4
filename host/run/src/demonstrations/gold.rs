//! Demonstrations from gold calls: if a task names the calls that solve it, they are made, one a turn, in its environment
//! or with the tools of plugins.

use std::sync::Arc;

use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::episode::Episode;
use rlf_dialogue::message::Message;
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::ToolCall;
use rlf_rollout::demonstrate::{Demonstrator, DemonstratorError};
use rlf_rollout::shown_tools::ToolView;
use rlf_rollout::user;

use crate::error::GoldError;

use super::reference::{gold_answer, gold_calls};
use super::turns::{TrialConversation, calling};

/// The answer after all calls, if the reference has none.
const DONE: &str = "Done.";

/// A task's gold calls as turns, followed by the answer.
#[derive(Debug, Clone)]
pub(crate) struct GoldDemonstration {
    pub(crate) task: Arc<Task>,
    turns: Arc<[Message]>,
}

impl GoldDemonstration {
    /// The demonstration of a task. None if it names no calls, if it names tools that the model is not offered, or if a
    /// model plays its user, because then the answers to the calls are not known. An error says why the calls cannot be
    /// written.
    pub(crate) fn from_task(
        task: &Arc<Task>,
        dialogue: &Arc<Dialogue>,
        tool_view: &ToolView,
    ) -> Result<Option<Self>, GoldError> {
        let calls = gold_calls(&task.reference)?;
        if calls.is_empty() || user::is_played_by_model(task) {
            return Ok(None);
        }
        let shown: Option<Vec<&str>> = calls
            .iter()
            .map(|(name, _)| tool_view.shown_name(name))
            .collect();
        let Some(shown) = shown else {
            return Ok(None);
        };
        let mut trial = TrialConversation::new(dialogue, shown.iter().copied())?;
        let mut turns = Vec::with_capacity(calls.len() + 1);
        for (number, (name, (own, arguments))) in shown.iter().zip(&calls).enumerate() {
            let turn = calling(vec![ToolCall {
                call_id: String::new(),
                name: (*name).to_owned(),
                arguments: tool_view.shown_arguments(own, arguments),
            }]);
            trial.say(&turn).map_err(|source| GoldError::Call {
                number: number + 1,
                source,
            })?;
            turns.push(turn);
        }
        let said = gold_answer(&task.reference)?;
        turns.push(trial.answer(said.as_deref().unwrap_or(DONE))?);
        Ok(Some(Self {
            task: task.clone(),
            turns: turns.into(),
        }))
    }

    /// Starts a demonstrator that makes the calls.
    pub(crate) fn play(&self) -> GoldDemonstrator {
        GoldDemonstrator {
            turns: self.turns.clone(),
            next: 0,
        }
    }
}

/// Plays the turns of a [`GoldDemonstration`], then repeats its answer until the episode ends.
pub(crate) struct GoldDemonstrator {
    turns: Arc<[Message]>,
    next: usize,
}

impl Demonstrator for GoldDemonstrator {
    fn next_turn(
        &mut self,
        episode: &Episode,
        _observations: &[String],
    ) -> Result<String, DemonstratorError> {
        let turn = self.turns.get(self.next).or(self.turns.last());
        self.next += 1;
        let turn = turn.ok_or("there is no turn")?;
        Ok(episode.write_turn(turn)?)
    }
}

#[cfg(test)]
mod tests {
    use rlf_dialogue::bpe::BpeOptions;
    use rlf_dialogue::config::{AnswerRule, DialogueConfig};
    use rlf_dialogue::protocol::Protocol;
    use rlf_dialogue::template::ChatTemplate;
    use rlf_dialogue::tokenizer::Tokenizer;
    use serde_json::{Value, json};

    use super::*;

    fn task(reference: &Value) -> Arc<Task> {
        serde_json::from_value(json!({
            "id": "t", "source": "s", "prompt": [], "reference": reference, "environment": "w",
        }))
        .unwrap()
    }

    const HERMES: &str = rlf_dialogue::template::small::SOURCE;
    const BARE: &str = include_str!("../../../dialogue/tests/fixtures/bare-calls.jinja");

    fn dialogue(template: &str, protocol: Protocol, answer: AnswerRule) -> Arc<Dialogue> {
        let corpus = ["a call and an answer"].map(String::from).into_iter();
        let tokenizer = Tokenizer::train_bpe(corpus, &BpeOptions::default()).unwrap();
        let template = ChatTemplate::from_source(template, "test.jinja").unwrap();
        let config = DialogueConfig {
            protocol: Some(protocol),
            answer,
            ..DialogueConfig::default()
        };
        Arc::new(Dialogue::new(Arc::new(tokenizer), template, config, &[]).unwrap())
    }

    fn hermes(answer: AnswerRule) -> Arc<Dialogue> {
        dialogue(HERMES, Protocol::Hermes, answer)
    }

    fn turns(task: &Arc<Task>, dialogue: &Arc<Dialogue>, tool_view: &ToolView) -> Vec<String> {
        let gold = GoldDemonstration::from_task(task, dialogue, tool_view)
            .unwrap()
            .unwrap();
        let calls = gold.turns.iter().flat_map(|turn| &turn.tool_calls);
        let mut trial = TrialConversation::new(dialogue, calls.map(|call| &*call.name)).unwrap();
        let mut play = gold.play();
        let mut next = |turn: &Message| {
            let text = play.next_turn(trial.episode(), &[]).unwrap();
            trial.say(turn).unwrap();
            text
        };
        gold.turns.iter().map(&mut next).collect()
    }

    #[test]
    fn gold_calls_are_made_one_a_turn_and_then_it_answers() {
        let row =
            task(&json!({"calls": [{"name": "f", "arguments": {"x": 1}}], "outputs": ["10", "a"]}));
        let written = |dialogue| turns(&row, &dialogue, &ToolView::default());
        assert_eq!(
            written(hermes(AnswerRule::FinalTurn)),
            [
                "<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":1}}</tool_call>",
                "10, a"
            ]
        );
        assert_eq!(
            written(dialogue(BARE, Protocol::Llama31, AnswerRule::Tag)),
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
        let thinking = dialogue(&thinks, Protocol::Hermes, AnswerRule::FinalTurn);
        let call = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
        assert_eq!(
            turns(&row, &thinking, &ToolView::default()),
            [call, DONE].map(|said| format!("</think>\n\n{said}"))
        );
    }

    #[test]
    fn calls_have_the_names_that_the_model_sees() {
        let row = task(&json!({"calls": [{"name": "f", "arguments": {"x": 1, "y": 2}}]}));
        let plain = hermes(AnswerRule::FinalTurn);
        let mut tool_view = ToolView::default();
        tool_view.rename.insert("f".into(), "g".into());
        let names = [("x".to_owned(), "z".to_owned())].into();
        tool_view.rename_parameters.insert("f".into(), names);
        assert_eq!(
            turns(&row, &plain, &tool_view)[0],
            "<tool_call>{\"name\":\"g\",\"arguments\":{\"z\":1,\"y\":2}}</tool_call>"
        );
        tool_view.hold_out.insert("f".into());
        assert!(
            GoldDemonstration::from_task(&row, &plain, &tool_view)
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn a_task_without_calls_has_no_demonstration() {
        let plain = hermes(AnswerRule::Tag);
        let has_none = |row: &Arc<Task>| {
            GoldDemonstration::from_task(row, &plain, &ToolView::default())
                .unwrap()
                .is_none()
        };
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
        let why = |dialogue: &Arc<Dialogue>, reference: Value| {
            let error =
                GoldDemonstration::from_task(&task(&reference), dialogue, &ToolView::default())
                    .unwrap_err();
            error.to_string()
        };
        let call = |arguments: Value| json!({"name": "f", "arguments": arguments});
        let ending = |answer: &str| json!({"calls": [call(json!({}))], "answer": answer});
        let plain = hermes(AnswerRule::FinalTurn);
        let bare = dialogue(BARE, Protocol::Llama31, AnswerRule::FinalTurn);
        let mut deep = json!(1);
        for _ in 0..127 {
            deep = json!([deep]);
        }
        let deep = json!({ "calls": [call(json!({ "x": deep }))] });
        for (dialogue, reference, says) in [
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
            // A template and a protocol that do not match.
            (
                &dialogue(HERMES, Protocol::Llama31, AnswerRule::Tag),
                ending("a"),
                "dialogue.protocol = \"llama-3.1\"",
            ),
        ] {
            let error = why(dialogue, reference);
            assert!(error.contains(says), "{error}");
        }
    }
}
