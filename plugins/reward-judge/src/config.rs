//! The operator's configuration.

use rlf_plugin::serde::Deserialize;
use rlf_plugin::serde_json::{self, Map, Value};

use crate::criteria::{self, Criterion, Scale};

/// Every key, as written. [`init`] checks the values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default, crate = "rlf_plugin::serde")]
pub(crate) struct Config {
    /// The rubric: 1 to 16 tables. [`Settings`] has them checked.
    criteria: Vec<Value>,
    /// The scale of the criteria that have none of their own: `[low, high]`.
    scale: Vec<i64>,
    /// The form of the judgement.
    pub(crate) mode: Mode,
    /// The part of a trajectory that the judge sees.
    pub(crate) judged: Judged,
    /// Shows the task's reference answer to the judge.
    pub(crate) reference: bool,
    /// Number of times that the judge grades the same trajectory: 1 or 2.
    pub(crate) looks: u32,
    /// Disagreement beyond which a trajectory is excluded, 0 to 1.
    pub(crate) max_disagreement: Option<f64>,
    /// Text of the operator for the system message.
    pub(crate) instructions: String,
    /// The operator's name of the model. Empty for the first one.
    pub(crate) model: String,
    /// From 0 to 2. None for the operator's temperature.
    pub(crate) temperature: Option<f64>,
    /// Maximum length of one answer of the judge.
    pub(crate) max_tokens: u32,
    /// Maximum length of the task, of the reference and of each judged text.
    pub(crate) max_chars: usize,
    /// Maximum number of questions about one group, retries not counted.
    pub(crate) max_questions: usize,
    /// Number of times that a question is asked again after an unusable answer.
    pub(crate) retries: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", crate = "rlf_plugin::serde")]
pub(crate) enum Mode {
    /// Each trajectory alone, by numbers.
    Score,
    /// Each pair of the group, in both orders.
    Pairwise,
    /// The whole group at once.
    Ranking,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", crate = "rlf_plugin::serde")]
pub(crate) enum Judged {
    /// The answer that the host extracted.
    Answer,
    /// The visible text of all turns.
    Visible,
    /// Turns, calls, and what tools and users answered.
    Transcript,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            criteria: Vec::new(),
            scale: vec![0, 10],
            mode: Mode::Score,
            judged: Judged::Answer,
            reference: true,
            looks: 1,
            max_disagreement: None,
            instructions: String::new(),
            model: String::new(),
            temperature: None,
            max_tokens: 512,
            max_chars: 12_000,
            max_questions: 64,
            retries: 1,
        }
    }
}

/// The checked configuration.
#[derive(Debug)]
pub(crate) struct Settings {
    /// At least one, in the operator's order.
    pub(crate) criteria: Vec<Criterion>,
    pub(crate) config: Config,
}

impl Settings {
    /// Refuses a disagreement that the operator does not accept.
    pub(crate) fn accept(&self, disagreement: f64) -> Result<(), String> {
        match self.config.max_disagreement {
            Some(max) if disagreement > max => Err(format!(
                "the judge disagrees with itself by {disagreement:.3} of the scale, more than \
                 `max_disagreement` = {max}"
            )),
            _ => Ok(()),
        }
    }
}

/// Reads and checks the configuration.
pub(crate) fn init(written: Map<String, Value>) -> Result<Settings, String> {
    read(&written)
        .and_then(check)
        .map_err(|why| format!("configuration: {why}"))
}

/// Reads the table. Every key has a default, so a key of a wrong type is the one that fails alone.
fn read(written: &Map<String, Value>) -> Result<Config, String> {
    let parse = |table: Map<String, Value>| serde_json::from_value::<Config>(Value::Object(table));
    parse(written.clone()).map_err(|error| {
        let alone = |(key, value): (&String, &Value)| {
            let error = parse(Map::from_iter([(key.clone(), value.clone())])).err()?;
            Some(format!("`{key}`: {error}"))
        };
        let culprit = written.iter().find_map(alone);
        culprit.unwrap_or_else(|| error.to_string())
    })
}

fn check(mut config: Config) -> Result<Settings, String> {
    let scale = Scale::read(&config.scale).map_err(|why| format!("`scale` {why}"))?;
    let criteria = criteria::read(&config.criteria, scale)?;
    config.criteria = Vec::new();
    config.instructions = config.instructions.trim().to_owned();
    between("looks", config.looks, 1, 2)?;
    between("retries", config.retries, 0, 5)?;
    between("max_tokens", config.max_tokens, 1, u32::MAX)?;
    between("max_chars", config.max_chars, 100, 200_000)?;
    between("max_questions", config.max_questions, 1, 10_000)?;
    if let Some(temperature) = config.temperature {
        between("temperature", temperature, 0.0, 2.0)?;
    }
    let pairwise = config.mode == Mode::Pairwise;
    if pairwise && config.looks == 2 {
        return Err(
            "`looks` = 2 does not go with mode = \"pairwise\", which asks about each pair twice \
             anyway, in both orders; leave `looks` out"
                .to_owned(),
        );
    }
    if let Some(max) = config.max_disagreement {
        between("max_disagreement", max, 0.0, 1.0)?;
        if config.looks == 1 && !pairwise {
            return Err("`max_disagreement` needs a second look; add looks = 2".to_owned());
        }
    }
    Ok(Settings { criteria, config })
}

fn between<T>(key: &str, value: T, low: T, high: T) -> Result<(), String>
where
    T: PartialOrd + std::fmt::Display,
{
    if (&low..=&high).contains(&&value) {
        Ok(())
    } else {
        Err(format!(
            "`{key}` = {value}; write a number from {low} to {high}"
        ))
    }
}
