//! The stages up to deployment.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Input;
use crate::rows::artefact::{self, Header, Line};
use crate::rows::complexity_scaling::scale;
use crate::rows::decompose::decompose;
use crate::rows::deployment::deploy;
use crate::rows::document::Toolset;
use crate::rows::document_generation::document;
use crate::rows::error::RowsError;
use crate::rows::facts::{Entity, Fact, Facts, Relation};
use crate::rows::function_integration::integrate;
use crate::rows::generated_facts::generate_facts;
use crate::rows::given_questions::{into_lines, own_steps, read_questions};
use crate::rows::options::RowOptions;
use crate::rows::question::Question;
use crate::rows::read_facts::read_facts;
use crate::rows::rejection::{Check, Finding};
use crate::rows::stage::Stage;

/// Entities of each kind in a generated graph. The number of rows does not change it, so that a larger number continues a
/// smaller one. Some 100,000 rows can be made of it.
const ENTITIES: usize = 400;
/// Entities of each kind if the questions are given, because they are for distractors only.
const ENTITIES_OF_DISTRACTORS: usize = 60;

/// A line of the graph of facts.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FactLine {
    Relation(Relation),
    Entity(Entity),
    Fact(Fact),
}

/// The stages of one run.
pub(crate) struct Stages<'a> {
    input: &'a Input<'a>,
    options: &'a RowOptions,
    output: &'a Path,
    candidates: usize,
    /// The options that artefacts depend on, as text.
    settings: String,
}

impl<'a> Stages<'a> {
    pub(super) fn new(
        input: &'a Input<'a>,
        options: &'a RowOptions,
        output: &'a Path,
        candidates: usize,
    ) -> Self {
        let scenarios: Vec<&str> = options.scenarios.iter().map(|one| one.as_str()).collect();
        Self {
            input,
            options,
            output,
            candidates,
            settings: format!(
                "{} {} {} {:?}",
                options.seed,
                scenarios.join(","),
                options.max_calls,
                options.complexity
            ),
        }
    }

    pub(super) fn file(&self, stage: Stage) -> PathBuf {
        artefact::file(self.output, stage)
    }

    fn header(&self, stage: Stage) -> Result<Header, RowsError> {
        Ok(Header::new(stage.artefact(), self.key(stage)?))
    }

    /// True if these stages have made the artefact already.
    pub(super) fn has_made(&self, stage: Stage) -> bool {
        let header = self.header(stage).ok();
        header.is_some() && artefact::header(&self.file(stage)) == header
    }

    /// Makes an artefact, unless it is there already. Returns whether it was there.
    pub(super) async fn make(&self, stage: Stage, again: bool) -> Result<bool, RowsError> {
        let header = self.header(stage)?;
        let path = self.file(stage);
        if !again && artefact::header(&path).as_ref() == Some(&header) {
            return Ok(true);
        }
        match stage {
            Stage::Facts => self.make_facts(&path, &header)?,
            Stage::Decompose => self.make_questions(&path, &header).await?,
            Stage::Document => {
                let facts = self.facts()?;
                self.map(Stage::Decompose, &path, &header, |question: Question| {
                    Line::Item(document(question, &facts, self.options))
                })?;
            }
            Stage::Integrate => self.map(Stage::Document, &path, &header, |toolset: Toolset| {
                Line::Item(integrate(toolset, self.options))
            })?,
            Stage::Scale => {
                let facts = self.facts()?;
                self.map(Stage::Integrate, &path, &header, |toolset: Toolset| {
                    Line::Item(scale(toolset, &facts, self.options))
                })?;
            }
            Stage::Deploy => self.map(Stage::Scale, &path, &header, |toolset: Toolset| {
                let id = toolset.question.id.clone();
                Line::new(deploy(toolset, self.options), id, stage)
            })?,
            Stage::Verify => {}
        }
        Ok(false)
    }

    /// The hash of everything that an artefact is made from.
    fn key(&self, stage: Stage) -> Result<String, RowsError> {
        let hash = |stage: Stage| artefact::hash(&self.file(stage));
        let settings = self.settings.as_str();
        Ok(match stage {
            Stage::Facts => {
                let source = match self.input {
                    Input::Generated => ENTITIES.to_string(),
                    Input::Facts(path) => artefact::hash(path)?,
                    Input::Questions { .. } => ENTITIES_OF_DISTRACTORS.to_string(),
                };
                artefact::key(&[&self.options.seed.to_string(), &source])
            }
            Stage::Decompose => {
                let source = match self.input {
                    Input::Questions { file, .. } => artefact::hash(file)?,
                    Input::Generated | Input::Facts(_) => self.candidates.to_string(),
                };
                let model = match self.input {
                    Input::Questions {
                        decomposer: Some(decomposer),
                        ..
                    } => decomposer.identity(self.options)?,
                    _ => String::new(),
                };
                artefact::key(&[settings, &source, &model, &hash(Stage::Facts)?])
            }
            Stage::Document => {
                artefact::key(&[settings, &hash(Stage::Facts)?, &hash(Stage::Decompose)?])
            }
            Stage::Integrate => artefact::key(&[settings, &hash(Stage::Document)?]),
            Stage::Scale => {
                artefact::key(&[settings, &hash(Stage::Facts)?, &hash(Stage::Integrate)?])
            }
            Stage::Deploy => artefact::key(&[settings, &hash(Stage::Scale)?]),
            Stage::Verify => artefact::key(&[settings, &hash(Stage::Deploy)?]),
        })
    }

    fn make_facts(&self, path: &Path, header: &Header) -> Result<(), RowsError> {
        let facts = match self.input {
            Input::Generated => generate_facts(self.options.seed, ENTITIES),
            Input::Questions { .. } => generate_facts(self.options.seed, ENTITIES_OF_DISTRACTORS),
            Input::Facts(path) => read_facts(path)?,
        };
        let relations = facts.relations().cloned().map(FactLine::Relation);
        let entities = facts.entities().cloned().map(FactLine::Entity);
        let all = facts.facts().iter().cloned().map(FactLine::Fact);
        let lines = relations.chain(entities).chain(all);
        artefact::write(path, header, lines.map(|line| Ok(Line::Item(line))))
    }

    fn facts(&self) -> Result<Facts, RowsError> {
        let (mut relations, mut entities, mut facts) = (Vec::new(), Vec::new(), Vec::new());
        for line in artefact::lines(&self.file(Stage::Facts))? {
            match line? {
                Line::Item(FactLine::Relation(relation)) => relations.push(relation),
                Line::Item(FactLine::Entity(entity)) => entities.push(entity),
                Line::Item(FactLine::Fact(fact)) => facts.push(fact),
                Line::Rejected(_) => {}
            }
        }
        Ok(Facts::new(relations, entities, facts))
    }

    async fn make_questions(&self, path: &Path, header: &Header) -> Result<(), RowsError> {
        if let Input::Questions { file, decomposer } = self.input {
            let given = read_questions(file)?;
            let made = match decomposer {
                Some(decomposer) => decomposer.questions(&given, self.options).await?,
                None => own_steps(file, &given)?,
            };
            let lines = into_lines(given, made).into_iter();
            return artefact::write(path, header, lines.map(Ok));
        }
        let facts = self.facts()?;
        let mut asked = BTreeSet::new();
        let lines = (0..self.candidates).map(|index| {
            let id = format!("{}-{index:06}", self.options.seed);
            let made = decompose(&facts, self.options, index).and_then(|question| {
                if asked.insert(question.question.to_lowercase()) {
                    Ok(question)
                } else {
                    let reason = format!("asked before: {}", question.question);
                    Err(Finding::new(Check::Duplicate, reason))
                }
            });
            Ok(Line::new(made, id, Stage::Decompose))
        });
        artefact::write(path, header, lines)
    }

    /// Makes an artefact from another one, item by item. Items that were rejected before are left out.
    fn map<T: DeserializeOwned, U: Serialize>(
        &self,
        from: Stage,
        path: &Path,
        header: &Header,
        mut make: impl FnMut(T) -> Line<U>,
    ) -> Result<(), RowsError> {
        let lines = artefact::lines::<T>(&self.file(from))?.filter_map(|line| match line {
            Ok(Line::Item(item)) => Some(Ok(make(item))),
            Ok(Line::Rejected(_)) => None,
            Err(error) => Some(Err(error)),
        });
        artefact::write(path, header, lines)
    }
}
