//! A candidate: the files of an environment as the model wrote them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rlf_plugins::python_environment::SCENARIOS_FILE;
use rlf_specification::model::Scenario;
use rlf_specification::{Format, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::ask::{Unusable, extract};

/// Names of languages that a model puts beside code fences.
const DATA: [&str; 2] = ["toml", "json"];
const PYTHON: [&str; 3] = ["python", "py", "python3"];

/// The form of an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// A specification in TOML or JSON.
    Specification,
    /// A Python file in EnvFactory's form, with scenarios beside it.
    Python,
}

impl Form {
    /// Its name on the command line and in the names of prompts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Specification => "specification",
            Self::Python => "python",
        }
    }
}

/// An environment before it is verified.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The environment's name.
    pub name: String,
    /// Its text.
    pub source: Source,
}

/// The text of a candidate.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A specification with its scenarios.
    Specification {
        /// The file.
        text: String,
        /// TOML or JSON.
        format: Format,
    },
    /// A Python file, and states to begin in.
    Python {
        /// The file.
        code: String,
        /// The states.
        scenarios: Vec<StateScenario>,
    },
}

/// A state to begin in, written by the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateScenario {
    /// simple, medium, complex or boundary.
    #[schemars(regex(pattern = r"^(simple|medium|complex|boundary)$"))]
    pub size: String,
    /// Its purpose.
    pub description: String,
    /// The whole state, as `load_scenario` takes it.
    pub state: Map<String, Value>,
}

/// States to begin in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StateScenarios {
    /// One of each size: simple, medium, complex, boundary.
    #[schemars(length(min = 4, max = 8))]
    pub(super) scenarios: Vec<StateScenario>,
}

/// The scenarios of a specification in a file of their own.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Scenarios {
    scenarios: Vec<Scenario>,
}

/// The text of a specification, and its format.
pub(super) fn specification(answer: &str) -> Result<(String, Format), Unusable> {
    let text = extract::block(answer, &DATA).trim();
    let format = if text.starts_with('{') {
        Format::Json
    } else {
        Format::Toml
    };
    let keys: Vec<String> = match format {
        Format::Json => rlf_json::from_str::<Map<String, Value>>(text)
            .map_err(|error| unreadable("JSON", &error))?
            .into_iter()
            .map(|(key, _)| key)
            .collect(),
        Format::Toml => toml::from_str::<toml::Table>(text)
            .map_err(|error| unreadable("TOML", &error))?
            .into_iter()
            .map(|(key, _)| key)
            .collect(),
    };
    for key in ["name", "entities", "operations"] {
        if !keys.iter().any(|there| there == key) {
            return Err(Unusable::new(format!("the specification has no `{key}`")));
        }
    }
    Ok((format!("{text}\n"), format))
}

fn unreadable(format: &str, error: &dyn std::error::Error) -> Unusable {
    Unusable::new(format!(
        "it is no {format}: {}",
        error.to_string().trim_end()
    ))
}

/// The Python file of an answer.
pub(super) fn python(answer: &str) -> Result<String, Unusable> {
    let code = extract::block(answer, &PYTHON).trim();
    if code.contains("FastMCP(") && code.contains("@mcp.tool") {
        return Ok(format!("{code}\n"));
    }
    Err(Unusable::new(
        "there is no Python file in it with `FastMCP(..)` and `@mcp.tool()`; give the whole file in one ```python block",
    ))
}

/// Scenarios of a specification.
pub(super) fn specification_scenarios(answer: &str) -> Result<Vec<Scenario>, Unusable> {
    let text = extract::block(answer, &DATA).trim();
    let Scenarios { scenarios } = if text.starts_with('{') {
        rlf_json::from_str(text).map_err(|error| unreadable("JSON", &error))?
    } else {
        toml::from_str(text).map_err(|error| unreadable("TOML", &error))?
    };
    sizes(scenarios.iter().map(|one| one.size.name()))?;
    Ok(scenarios)
}

/// Scenarios of a Python file.
pub(super) fn state_scenarios(scenarios: StateScenarios) -> Result<Vec<StateScenario>, Unusable> {
    sizes(scenarios.scenarios.iter().map(|one| one.size.as_str()))?;
    Ok(scenarios.scenarios)
}

/// Refuses scenarios if one size is missing or occurs twice.
fn sizes<'s>(names: impl Iterator<Item = &'s str>) -> Result<(), Unusable> {
    let mut there = BTreeSet::new();
    for name in names {
        if !there.insert(name.to_owned()) {
            return Err(Unusable::new(format!(
                "there are two scenarios of the size {name}"
            )));
        }
    }
    match Size::ALL.iter().find(|size| !there.contains(size.name())) {
        Some(missing) => Err(Unusable::new(format!(
            "there is no {} scenario",
            missing.name()
        ))),
        None => Ok(()),
    }
}

/// Puts scenarios into the text of a specification, in place of those that it has.
pub(super) fn with_scenarios(
    text: &str,
    format: Format,
    scenarios: Vec<Scenario>,
) -> Result<String, Unusable> {
    let scenarios = Scenarios { scenarios };
    match format {
        Format::Json => {
            let mut whole: Map<String, Value> =
                rlf_json::from_str(text).map_err(|error| unreadable("JSON", &error))?;
            whole.insert("scenarios".to_owned(), json!(scenarios.scenarios));
            let text = serde_json::to_string_pretty(&whole);
            Ok(text.map_err(|error| unreadable("JSON", &error))? + "\n")
        }
        Format::Toml => {
            let mut document: toml_edit::DocumentMut = text
                .parse()
                .map_err(|error: toml_edit::TomlError| unreadable("TOML", &error))?;
            document.remove("scenarios");
            let scenarios =
                toml::to_string(&scenarios).map_err(|error| unreadable("TOML", &error))?;
            Ok(format!(
                "{}\n\n{scenarios}",
                document.to_string().trim_end()
            ))
        }
    }
}

impl Candidate {
    /// The name of its main file.
    pub fn file(&self) -> String {
        let extension = match &self.source {
            Source::Specification {
                format: Format::Toml,
                ..
            } => "toml",
            Source::Specification {
                format: Format::Json,
                ..
            } => "json",
            Source::Python { .. } => "py",
        };
        format!("{}.{extension}", self.name)
    }

    /// Its main text.
    pub fn text(&self) -> &str {
        match &self.source {
            Source::Specification { text, .. } => text,
            Source::Python { code, .. } => code,
        }
    }

    /// The scenarios of a Python file, as `scenarios.json` has them.
    pub fn scenarios(&self) -> Vec<Value> {
        let Source::Python { scenarios, .. } = &self.source else {
            return Vec::new();
        };
        let name = self.name.as_str();
        let all = scenarios.iter().map(|scenario| {
            json!({
                "id": format!("{name}-{}", scenario.size),
                "task": {"servers": {name: scenario.state}},
                "seed": 0,
                "calls": [],
            })
        });
        all.collect()
    }

    /// A hash of its files.
    pub fn hash(&self) -> String {
        let all = json!([self.file(), self.text(), self.scenarios()]);
        blake3::hash(all.to_string().as_bytes()).to_hex()[..16].to_owned()
    }

    /// Writes the candidate's files into a folder, which is created. Returns the main file.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, (PathBuf, io::Error)> {
        fs::create_dir_all(folder).map_err(|error| (folder.to_owned(), error))?;
        let put = |path: PathBuf, text: &str| match rlf_files::write(&path, text.as_bytes()) {
            Ok(()) => Ok(path),
            Err(error) => Err((path, error)),
        };
        if matches!(self.source, Source::Python { .. }) {
            let scenarios = Value::Array(self.scenarios());
            put(folder.join(SCENARIOS_FILE), &format!("{scenarios:#}\n"))?;
        }
        put(folder.join(self.file()), self.text())
    }

    /// The candidate that a revision makes of this one. Parts that the revision leaves out stay.
    pub(super) fn revised(&self, answer: &str) -> Result<Self, Unusable> {
        let source = match &self.source {
            Source::Specification { .. } => {
                let (text, format) = specification(answer)?;
                Source::Specification { text, format }
            }
            Source::Python { code, scenarios } => {
                let blocks = extract::blocks(answer);
                let has = |languages: &[&str]| {
                    blocks.iter().any(|block| {
                        languages
                            .iter()
                            .any(|one| block.language.eq_ignore_ascii_case(one))
                    })
                };
                let states = has(&["json"])
                    .then(|| states(answer))
                    .transpose()?
                    .unwrap_or_else(|| scenarios.clone());
                let code = if has(&PYTHON) || !has(&["json"]) {
                    python(answer)?
                } else {
                    code.clone()
                };
                Source::Python {
                    code,
                    scenarios: states,
                }
            }
        };
        let name = self.name.clone();
        Ok(Self { name, source })
    }
}

/// The scenarios in the JSON block of a revision.
fn states(answer: &str) -> Result<Vec<StateScenario>, Unusable> {
    let value = extract::json(answer)?;
    let found: StateScenarios = serde_json::from_value(value)
        .map_err(|error| Unusable::new(format!("the scenarios: {error}")))?;
    state_scenarios(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOORS: &str = "# Doors of a house.\nname = \"Doors\"\nentities = []\noperations = []\n\
                         scenarios = [{ size = \"simple\" }]\n\n[vocabularies]\nwords = [\"a\"] # kept\n";
    const SIZES: &str = "[[scenarios]]\nsize = \"simple\"\ncounts = { door = 2 }\n[[scenarios]]\nsize = \"medium\"\n\
                         [[scenarios]]\nsize = \"complex\"\n[[scenarios]]\nsize = \"boundary\"\n";

    #[test]
    fn scenarios_replace_those_of_a_specification_and_everything_else_stays() {
        let scenarios = specification_scenarios(&format!("```toml\n{SIZES}```")).unwrap();
        let (text, format) = specification(&format!("Here:\n```toml\n{DOORS}```\n")).unwrap();
        let whole = with_scenarios(&text, format, scenarios.clone()).unwrap();
        assert!(whole.starts_with("# Doors of a house.\n"), "{whole}");
        assert!(whole.contains("words = [\"a\"] # kept\n"), "{whole}");
        let table: toml::Table = toml::from_str(&whole).unwrap();
        assert_eq!(table["scenarios"].as_array().map(Vec::len), Some(4));
        assert_eq!(
            table["scenarios"][0]["counts"]["door"].as_integer(),
            Some(2)
        );
        let (text, format) =
            specification(r#"{"name": "Doors", "entities": [], "operations": []}"#).unwrap();
        assert_eq!(format, Format::Json);
        let whole = with_scenarios(&text, format, scenarios).unwrap();
        let value: Value = serde_json::from_str(&whole).unwrap();
        assert_eq!(value["scenarios"][3]["size"], "boundary");
    }

    #[test]
    fn an_answer_that_is_no_specification_says_why() {
        let why = |answer: &str| specification(answer).unwrap_err().to_string();
        assert!(
            why("name = \"Doors\"\nentities = [\n")
                .contains("is no TOML: TOML parse error at line")
        );
        assert!(why("{\"name\": 1,}").contains("is no JSON: "));
        assert!(why("name = \"Doors\"\nentities = []\n").ends_with("has no `operations`"));
        let why = |answer: &str| specification_scenarios(answer).unwrap_err().to_string();
        assert!(why(&SIZES.replace("medium", "simple")).ends_with("of the size simple"));
        assert!(why("[[scenarios]]\nsize = \"huge\"\n").contains("unknown variant `huge`"));
        assert!(why("scenarios = []").ends_with("no simple scenario"));
    }

    #[test]
    fn a_revision_of_python_may_leave_out_the_code_or_the_states() {
        let scenario = |size: &str| StateScenario {
            size: size.to_owned(),
            description: String::new(),
            state: Map::new(),
        };
        let old = Candidate {
            name: "Doors".to_owned(),
            source: Source::Python {
                code: "old\n".to_owned(),
                scenarios: Size::ALL.map(|size| scenario(size.name())).to_vec(),
            },
        };
        let code = "mcp = FastMCP(name=\"Doors\")\n@mcp.tool()\n";
        let new = old
            .revised(&format!("1: mended\n```python\n{code}```\n"))
            .unwrap();
        assert_eq!(new.text(), code);
        assert_eq!(new.scenarios(), old.scenarios());
        let mut states = json!({"scenarios": Size::ALL.map(|size| scenario(size.name()))});
        states["scenarios"][0]["state"] = json!({"lit": true});
        let new = old.revised(&format!("```json\n{states}\n```\n")).unwrap();
        assert_eq!(new.text(), "old\n");
        assert_eq!(
            new.scenarios()[0]["task"],
            json!({"servers": {"Doors": {"lit": true}}})
        );
        assert_ne!(new.hash(), old.hash());
        assert!(old.revised("It is mended.").is_err());
    }
}
