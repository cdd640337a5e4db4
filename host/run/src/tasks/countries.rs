//! The quickstart's questions about countries. [`rlf_forge`] generates them without end for training, with a
//! demonstrator that knows the answers. The configuration calls them `[tasks.facts]`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rlf_dialogue::config::AnswerRule;
use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::episode::Episode;
use rlf_dialogue::split::Split;
use rlf_dialogue::task::{NumberedTask, Task};
use rlf_dialogue::tool::ToolCall;
use rlf_forge::countries::{CountryTasks, DemonstratedTurn, LOOKUP, Stage};
use rlf_rollout::EpisodeContext;
use rlf_rollout::demonstrate::{Demonstrator, DemonstratorError};
use rlf_rollout::shown_tools::ShownTools;
use serde_json::json;

use super::{TaskSource, named_tools};
use crate::demonstrations::turns::{TrialConversation, answering, calling};
use crate::demonstrations::{DemonstrationSet, SftDemonstration};
use crate::error::{RunFailure, TasksError};
use crate::text::Corpus;

/// File name of the table of countries within a run. `data.<slot> = "run:facts.csv"` binds it.
const FACTS_TABLE: &str = "facts.csv";

/// Number of exercises on whose text a tokenizer is trained. They contain every piece that recurs; more would only take
/// time.
const EXERCISES: u64 = 2000;

/// Questions over a table of countries, real ones and generated ones.
pub(crate) struct Countries {
    tasks: Arc<CountryTasks>,
}

impl Countries {
    /// Wraps generated country tasks.
    pub(crate) fn new(tasks: CountryTasks) -> Self {
        Self {
            tasks: Arc::new(tasks),
        }
    }

    fn task(&self, split: Split, stage: Stage, number: u64) -> NumberedTask {
        let task = Arc::new(self.tasks.task(split, stage, number));
        NumberedTask { number, task }
    }
}

impl TaskSource for Countries {
    fn training_tasks(&self, numbers: Range<u64>) -> Vec<NumberedTask> {
        numbers
            .map(|number| self.task(Split::Train, Stage::Rl, number))
            .collect()
    }

    fn first(&self, split: Split, count: usize) -> Vec<NumberedTask> {
        (0..count as u64)
            .map(|number| self.task(split, Stage::Eval, number))
            .collect()
    }

    fn find(&self, split: Split, which: &str) -> Result<NumberedTask, TasksError> {
        if let Ok(number) = which.parse::<u64>() {
            return Ok(self.task(split, Stage::Eval, number));
        }
        (0..10_000)
            .map(|number| self.task(split, Stage::Eval, number))
            .find(|numbered| numbered.task.id == which)
            .ok_or_else(|| {
                TasksError::NotFound(format!(
                    "no task `{which}` among the first 10,000 of this split; ids look like `{}`",
                    self.task(split, Stage::Eval, 0).task.id
                ))
            })
    }

    fn all_tasks(&self) -> Vec<Arc<Task>> {
        Vec::new()
    }

    fn tools(&self) -> Option<BTreeSet<String>> {
        let task = self.task(Split::Train, Stage::Rl, 0).task;
        named_tools(&task).map(|tools| tools.into_iter().collect())
    }

    fn environments(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }

    fn corpus(&self) -> Corpus<'_> {
        Box::new(self.tasks.tokenizer_corpus(EXERCISES))
    }

    fn check(&self, context: &EpisodeContext) -> Result<(), RunFailure> {
        // All of these questions use the same tools.
        let task = self.task(Split::Train, Stage::Rl, 0).task;
        let offered = context.tools.definitions(task.tools.as_deref());
        let offered = offered.map_err(TasksError::NoFactTools)?;
        Episode::start(&context.dialogue, String::new(), &task, offered)
            .map_err(RunFailure::table("tasks.facts"))?;
        Ok(())
    }

    fn demonstrations(
        &self,
        dialogue: &Arc<Dialogue>,
        _shown: &ShownTools,
    ) -> Result<Arc<dyn DemonstrationSet>, RunFailure> {
        TrialConversation::new(dialogue, std::iter::once(LOOKUP))
            .map_err(RunFailure::table("tasks.facts"))?
            .say(&calling(several_lookups()))
            .map_err(TasksError::SeveralCalls)?;
        Ok(Arc::new(CountriesDemonstrations {
            tasks: self.tasks.clone(),
            answer: dialogue.config().answer,
        }))
    }

    fn write_data(&self, folder: &Path) -> Result<(), RunFailure> {
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(folder.join(FACTS_TABLE), self.tasks.table().to_csv()))
            .map_err(RunFailure::io(format!("cannot write {}", folder.display())))
    }

    fn check_data(&self, folder: &Path) -> Result<(), RunFailure> {
        let file = folder.join(FACTS_TABLE);
        let kept = std::fs::read_to_string(&file)
            .map_err(RunFailure::io(format!("cannot read {}", file.display())))?;
        if kept != self.tasks.table().to_csv() {
            return Err(TasksError::OtherFacts(file).into());
        }
        Ok(())
    }
}

/// Demonstrations of training questions, without end.
struct CountriesDemonstrations {
    tasks: Arc<CountryTasks>,
    answer: AnswerRule,
}

impl DemonstrationSet for CountriesDemonstrations {
    fn per_epoch(&self) -> u64 {
        u64::MAX
    }

    fn get(&self, number: u64) -> Result<SftDemonstration, TasksError> {
        let task = self.tasks.task(Split::Train, Stage::Sft, number);
        let demonstrator = CountriesDemonstrator {
            writer: self.tasks.demonstration(&task)?,
            answer: self.answer,
        };
        Ok(SftDemonstration::Played(
            Arc::new(task),
            Box::new(demonstrator),
        ))
    }
}

/// A turn with several calls, as in some demonstrations.
fn several_lookups() -> Vec<ToolCall> {
    let call = |key: &str| ToolCall {
        call_id: String::new(),
        name: LOOKUP.to_owned(),
        arguments: json!({"of": key}),
    };
    ["a", "b"].map(call).into()
}

/// The generator's demonstrator, which writes turns as the run's model does.
struct CountriesDemonstrator {
    writer: rlf_forge::countries::CountryDemonstrator,
    answer: AnswerRule,
}

impl Demonstrator for CountriesDemonstrator {
    fn next_turn(
        &mut self,
        episode: &Episode,
        observations: &[String],
    ) -> Result<String, DemonstratorError> {
        let turn = match self.writer.next_turn(observations)? {
            Some(DemonstratedTurn::Act(calls)) => calling(calls),
            Some(DemonstratedTurn::Answer(answer)) => answering(&answer, self.answer),
            None => return Err("the demonstration is over, but the episode is not".into()),
        };
        Ok(episode.write_turn(&turn)?)
    }
}

#[cfg(test)]
mod tests {
    use rlf_dialogue::template::ChatTemplate;
    use rlf_dialogue::tokenizer::Tokenizer;
    use rlf_forge::countries::CALCULATE;

    use super::*;
    use crate::config::RunConfig;
    use crate::text::open_tokenizer;

    fn quickstart() -> (RunConfig, Countries, Tokenizer) {
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/quickstart.toml");
        let config = RunConfig::load(&config, &[]).unwrap();
        let facts = config.tasks.facts.as_ref().unwrap();
        let tasks = Countries::new(CountryTasks::generate(config.seed, facts).unwrap());
        let tokenizer = open_tokenizer(&config, || tasks.corpus()).unwrap();
        (config, tasks, tokenizer)
    }

    /// The coverage below is counted with this tokenizer.
    #[test]
    fn demonstrations_of_the_quickstart_are_written_as_the_generator_counts_them() {
        let (config, Countries { tasks }, tokenizer) = quickstart();
        let tokenizer = Arc::new(tokenizer);
        let template = ChatTemplate::small();
        let dialogue = Dialogue::new(tokenizer, template, config.dialogue.clone(), &[]).unwrap();
        let answer = dialogue.config().answer;
        let trial =
            TrialConversation::new(&Arc::new(dialogue), [LOOKUP, CALCULATE].into_iter()).unwrap();
        for number in 0..300 {
            let task = tasks.task(Split::Train, Stage::Sft, number);
            let writer = || tasks.demonstration(&task).unwrap();
            let turn = writer().next_turn(&[]).unwrap().unwrap();
            let mut demonstrator = CountriesDemonstrator {
                writer: writer(),
                answer,
            };
            let written = demonstrator.next_turn(trial.episode(), &[]);
            assert_eq!(written.unwrap(), turn.to_hermes());
        }
        let calls = several_lookups();
        for (turn, message) in [
            (DemonstratedTurn::Act(calls.clone()), calling(calls)),
            (
                DemonstratedTurn::Answer("5.4".into()),
                answering("5.4", answer),
            ),
        ] {
            let written = trial.episode().write_turn(&message);
            assert_eq!(written.unwrap(), turn.to_hermes());
        }
    }

    #[test]
    fn every_token_of_a_held_out_quickstart_task_is_common_in_its_demonstrations() {
        let (config, Countries { tasks }, tokenizer) = quickstart();
        let encode = |text: &str| tokenizer.encode_trusted(text);
        // A fraction of the demonstrations that training uses, which are 1,200 steps of 64.
        let coverage = tasks.token_coverage(&encode, 20_000, config.eval.tasks as u64, 10);
        assert!(coverage.tokens > 100, "{}", coverage.tokens);
        assert_eq!(coverage.rare, []);
    }
}
