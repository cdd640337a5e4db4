//! The parts that the modes share: the group as the judge sees it, the limits on it, and the terms.

use rlf_plugin::{Task, Terms, Trajectory};

use crate::config::{Judged, Settings};
use crate::judged;
use crate::prompt::Block;

/// One group to grade.
pub(crate) struct Case<'a> {
    pub(crate) settings: &'a Settings,
    /// The judged text of each trajectory, or none if there is nothing to judge. Its name is `candidate`.
    pub(crate) candidates: Vec<Option<Block>>,
    pub(crate) seed: u64,
    /// The task, and its reference if it is shown.
    setting: Vec<Block>,
}

/// The cost of a trajectory's grading. For questions about several trajectories, each has its share. Answers that the host
/// rejected and asked for again (`schema_retries`) are not in it; the metrics `model/NAME/*` have them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Cost {
    pub(crate) questions: f64,
    pub(crate) tokens: f64,
}

impl<'a> Case<'a> {
    pub(crate) fn new(
        settings: &'a Settings,
        task: &Task,
        group: &[Trajectory],
        seed: u64,
    ) -> Self {
        let config = &settings.config;
        let block = |name, about, parts: Vec<_>| {
            (!parts.is_empty()).then(|| Block::new(name, about, &parts, config.max_chars))
        };
        let asked = block("task", "what the candidate was asked", judged::task(task));
        let about = "the right answer, as the author of the task gives it";
        let reference = config.reference.then(|| judged::reference(task));
        let reference = block("reference", about, reference.unwrap_or_default());
        let candidate = |trajectory| {
            let parts = judged::judged(config.judged, trajectory);
            block("candidate", config.judged.about(), parts)
        };
        Self {
            settings,
            candidates: group.iter().map(candidate).collect(),
            seed,
            setting: asked.into_iter().chain(reference).collect(),
        }
    }

    /// The blocks of a question about these candidates.
    pub(crate) fn blocks(&self, candidates: impl IntoIterator<Item = Block>) -> Vec<Block> {
        self.setting.iter().cloned().chain(candidates).collect()
    }

    /// Indices and texts of the trajectories that have something to judge.
    pub(crate) fn answered(&self) -> Vec<(usize, &Block)> {
        self.candidates
            .iter()
            .enumerate()
            .filter_map(|(index, block)| Some((index, block.as_ref()?)))
            .collect()
    }

    /// Refuses more questions about the group than the operator allows.
    pub(crate) fn allow(&self, questions: usize) -> Result<(), String> {
        let max = self.settings.config.max_questions;
        if questions > max {
            return Err(format!(
                "a group of {} needs {questions} questions to the judge, more than `max_questions` = {max}: raise \
                 it, or make groups smaller",
                self.candidates.len()
            ));
        }
        Ok(())
    }

    /// Refuses to compare a trajectory with nothing.
    pub(crate) fn at_least_two(&self, mode: &str) -> Result<(), String> {
        if self.candidates.len() < 2 {
            return Err(format!(
                "mode = \"{mode}\" compares the trajectories of a group, and this group has {}: it needs at least \
                 two. Make groups larger, or use mode = \"score\"",
                self.candidates.len()
            ));
        }
        Ok(())
    }
}

impl Judged {
    /// The words that tell the judge about a candidate's block.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::Answer => "the candidate's answer",
            Self::Visible => "everything that the candidate said, turn by turn",
            Self::Transcript => {
                "what the candidate said and did; labels mark what tools and users answered, which is not the \
                 candidate's work"
            }
        }
    }
}

/// The metrics of every trajectory that has terms.
pub(crate) fn with_metrics(terms: Terms, cost: Cost, unanswered: bool) -> Terms {
    terms
        .metric("questions", cost.questions)
        .metric("judge_tokens", cost.tokens)
        .metric("unanswered", f64::from(u8::from(unanswered)))
}
