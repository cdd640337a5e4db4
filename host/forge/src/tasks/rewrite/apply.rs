//! The results of rewriting, put into the tasks.

use std::collections::{HashMap, HashSet};

use super::accept::accept;
use super::{Ended, Report, RewriteError, Rewriter};
use crate::tasks::record::{Author, TaskRecord};

impl Rewriter<'_> {
    /// Puts the results into the tasks, in their order. A text that another task has, or whose template too many have, is
    /// refused.
    pub(super) fn apply(
        &self,
        tasks: &mut [TaskRecord],
        ends: &HashMap<u64, Ended>,
    ) -> Result<Report, RewriteError> {
        let words = |task: &TaskRecord| -> Vec<String> {
            task.turns.iter().map(|turn| turn.query.clone()).collect()
        };
        let template = |task: &TaskRecord| -> Vec<String> {
            let turns = task.turns.iter();
            turns.map(|turn| turn.template.clone()).collect()
        };
        let mut report = Report::default();
        let mut taken: HashSet<Vec<String>> = tasks.iter().map(words).collect();
        let mut templates: HashMap<Vec<String>, usize> = HashMap::new();
        let limit = self.maker.options.template_limit();
        for task in tasks {
            let (author, kind) = match ends.get(&task.candidate) {
                None => (Author::Unanswered, None),
                Some(Ended {
                    refused: Some((kind, _)),
                    ..
                }) => (Author::Refused, Some(kind.clone())),
                Some(ended) => {
                    let graph = self.maker.graph(task.servers.keys())?;
                    // The file may have been edited.
                    match accept(self.maker, &graph, task, &ended.turns) {
                        Err(faults) => {
                            let kind = faults.first().map_or("form", |fault| fault.kind);
                            (Author::Refused, Some(kind.to_owned()))
                        }
                        Ok(new) if words(&new) != words(task) && taken.contains(&words(&new)) => {
                            (Author::Refused, Some("duplicate".to_owned()))
                        }
                        Ok(new) if templates.get(&template(&new)).is_some_and(|n| *n >= limit) => {
                            (Author::Refused, Some("template".to_owned()))
                        }
                        Ok(new) => {
                            taken.insert(words(&new));
                            *task = new;
                            (Author::Model, None)
                        }
                    }
                }
            };
            *templates.entry(template(task)).or_default() += 1;
            task.author = author;
            match (author, kind) {
                (Author::Model, _) => report.written += 1,
                (_, Some(kind)) => *report.refused.entry(kind).or_default() += 1,
                (_, None) => report.unanswered += 1,
            }
        }
        Ok(report)
    }
}
