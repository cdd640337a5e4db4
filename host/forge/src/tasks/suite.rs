//! The environments that tasks are made in, with their tools and scenarios.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rlf_dialogue::tool::{Hints, ToolDefinition};
use rlf_specification::Program;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::environment::{Specified, TaskEnvironment};
use crate::graph::{GraphError, Input, Lexical, Tool, ToolGraph, specified_tools};

/// The environments of a suite, in the order of their names.
pub struct Suite {
    environments: Vec<Described>,
    playable: Box<dyn TaskEnvironment>,
    /// Place of each tool by its full name: environment, then tool.
    places: BTreeMap<String, (usize, usize)>,
}

/// One environment of a suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Described {
    /// Its name, with which the names of its tools begin.
    pub name: String,
    /// Its domain, such as `commerce`.
    pub domain: String,
    /// Hash of what it was read from.
    pub hash: String,
    /// Names of the scenarios that it can begin in.
    pub scenarios: Vec<String>,
    /// Its tools, as the graph sees them.
    pub tools: Vec<Tool>,
    /// Its tools, as a model sees them, in the same order.
    pub definitions: Vec<ToolDefinition>,
    /// The tools that change nothing: `Server-name`.
    pub read_only: BTreeSet<String>,
    /// Fields of the state from which the values of parameters come, by tool and parameter. A parameter that is not here
    /// takes any text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vocabularies: BTreeMap<String, BTreeMap<String, String>>,
}

/// The environments cannot be used together.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// Two environments have one name.
    #[error("two environments are called {0}; rename one of them, or leave one out")]
    SameName(String),
    /// There is none.
    #[error(
        "there is no environment to make tasks in; give specifications, a folder of them, or a folder of Python files"
    )]
    Empty,
}

impl Suite {
    /// Environments as data. Each comes with its domain.
    pub fn from_programs(programs: Vec<(Program, String)>) -> Result<Self, SuiteError> {
        let mut all = Vec::with_capacity(programs.len());
        let mut running = Vec::with_capacity(programs.len());
        for (program, domain) in programs {
            all.push(described(&program, domain));
            running.push(Arc::new(program));
        }
        Self::new(all, Box::new(Specified::new(running)))
    }

    /// Any environments that can be played.
    pub fn new(
        mut environments: Vec<Described>,
        playable: Box<dyn TaskEnvironment>,
    ) -> Result<Self, SuiteError> {
        environments.sort_by(|one, other| one.name.cmp(&other.name));
        let twice = environments
            .windows(2)
            .find(|pair| pair[0].name == pair[1].name);
        if let Some(pair) = twice {
            return Err(SuiteError::SameName(pair[0].name.clone()));
        }
        if environments.is_empty() {
            return Err(SuiteError::Empty);
        }
        let mut places = BTreeMap::new();
        for (environment, described) in environments.iter().enumerate() {
            for (tool, definition) in described.definitions.iter().enumerate() {
                places.insert(definition.name.clone(), (environment, tool));
            }
        }
        Ok(Self {
            environments,
            playable,
            places,
        })
    }

    /// The environments.
    pub fn environments(&self) -> &[Described] {
        &self.environments
    }

    /// The environments as sessions are opened in them.
    pub fn playable(&self) -> &dyn TaskEnvironment {
        &*self.playable
    }

    /// The tool graph of some of the environments, with those of their tools that a filter allows.
    pub fn graph(
        &self,
        environments: &[usize],
        allowed: impl Fn(&str) -> bool,
    ) -> Result<ToolGraph, GraphError> {
        let tools = environments
            .iter()
            .flat_map(|&place| &self.environments[place].tools)
            .filter(|tool| allowed(&tool.full_name()));
        ToolGraph::new(tools.cloned().collect(), &Lexical::default())
    }

    /// An environment by name.
    pub fn environment(&self, name: &str) -> Option<&Described> {
        self.environments
            .iter()
            .find(|environment| environment.name == name)
    }

    /// A tool by its full name, as the graph sees it.
    pub fn tool(&self, full_name: &str) -> Option<&Tool> {
        let (environment, tool) = *self.places.get(full_name)?;
        self.environments[environment].tools.get(tool)
    }

    /// The definition that a model sees of the tool with this full name.
    pub fn definition(&self, full_name: &str) -> Option<&ToolDefinition> {
        let (environment, tool) = *self.places.get(full_name)?;
        self.environments[environment].definitions.get(tool)
    }

    /// The JSON schema of a parameter.
    pub fn parameter(&self, full_name: &str, parameter: &str) -> &Value {
        let definition = self.definition(full_name);
        definition.map_or(&Value::Null, |definition| {
            &definition.input_schema["properties"][parameter]
        })
    }

    /// An input of a tool.
    pub fn input(&self, full_name: &str, parameter: &str) -> Option<&Input> {
        let mut inputs = self.tool(full_name)?.inputs.iter();
        inputs.find(|input| input.name == parameter)
    }

    /// True if a tool changes nothing.
    pub fn is_read_only(&self, full_name: &str) -> bool {
        let place = self.places.get(full_name);
        place.is_some_and(|(environment, _)| {
            self.environments[*environment]
                .read_only
                .contains(full_name)
        })
    }

    /// The field of the state from which the values of a parameter come.
    pub fn vocabulary(&self, full_name: &str, parameter: &str) -> Option<&str> {
        let (environment, _) = self.places.get(full_name)?;
        let tools = &self.environments[*environment].vocabularies;
        tools.get(full_name)?.get(parameter).map(String::as_str)
    }
}

fn described(program: &Program, domain: String) -> Described {
    let specification = program.specification();
    let definitions: Vec<ToolDefinition> = specification
        .operations
        .iter()
        .map(|operation| ToolDefinition {
            name: format!("{}-{}", specification.name, operation.name),
            description: operation.description.clone(),
            input_schema: operation.input_schema(),
            output_schema: Some(operation.result.schema()),
            hints: Hints {
                read_only: operation.read_only,
                idempotent: operation.read_only,
                ..Hints::default()
            },
            extra: Vec::new(),
        })
        .collect();
    let read_only = definitions
        .iter()
        .filter(|definition| definition.hints.read_only)
        .map(|definition| definition.name.clone())
        .collect();
    let text = serde_json::to_string(specification);
    let text = text.expect("all keys of a specification are texts");
    Described {
        name: specification.name.clone(),
        domain,
        hash: blake3::hash(text.as_bytes()).to_hex()[..16].to_owned(),
        scenarios: specification
            .scenarios
            .iter()
            .map(|scenario| scenario.size.name().to_owned())
            .collect(),
        tools: specified_tools(specification),
        definitions,
        read_only,
        vocabularies: BTreeMap::new(),
    }
}
