//! The specifications of this plugin, checked and compiled.

use std::collections::BTreeMap;
use std::path::Path;

use rlf_plugin::serde_json::Value;
use rlf_plugin::{Error, Hints, ToolDefinition, data, error_message};
use rlf_specification::{Format, Program, check_text};

const SLOT: &str = "specifications";

/// The environments by name.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) programs: BTreeMap<String, Program>,
    /// The tools of each.
    pub(crate) tools: BTreeMap<String, Vec<ToolDefinition>>,
}

impl Servers {
    /// Reads the bound files.
    pub(crate) fn load() -> Result<Self, String> {
        let message = |error: Error| error_message(&error).to_owned();
        let mut servers = Self {
            programs: BTreeMap::new(),
            tools: BTreeMap::new(),
        };
        for entry in data::entries(SLOT).map_err(message)? {
            let Some(format) = Format::from_path(Path::new(&entry.path)) else {
                continue;
            };
            let text = data::read_text(SLOT, &entry).map_err(message)?;
            servers.add(&entry.path, &text, format)?;
        }
        if servers.programs.is_empty() {
            return Err(format!(
                "there is no specification in the data `{SLOT}`: bind a `.toml` or `.json` file, or a folder of them"
            ));
        }
        Ok(servers)
    }

    fn add(&mut self, file: &str, text: &str, format: Format) -> Result<(), String> {
        let checked = check_text(text, format);
        let Some(program) = checked.program else {
            let errors: Vec<String> = checked.findings.iter().map(ToString::to_string).collect();
            return Err(format!("specification {file}: {}", errors.join("\n")));
        };
        let name = program.specification().name.clone();
        let tools = program.specification().operations.iter().map(|operation| {
            let mut hints = Hints::empty();
            if operation.read_only {
                hints = Hints::READ_ONLY | Hints::IDEMPOTENT;
            }
            ToolDefinition {
                name: format!("{name}-{}", operation.name),
                description: operation.description.clone(),
                input_schema: operation.input_schema().to_string(),
                output_schema: Some(operation.result.schema().to_string()),
                hints,
                extra: Vec::new(),
            }
        });
        self.tools.insert(name.clone(), tools.collect());
        if self.programs.insert(name.clone(), program).is_some() {
            return Err(format!(
                "two specifications are called `{name}`: rename one of them"
            ));
        }
        Ok(())
    }

    /// The environment with this name.
    pub(crate) fn program(&self, name: &str) -> Result<&Program, Error> {
        self.programs.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.programs.keys().map(String::as_str).collect();
            Error::InvalidArguments(format!(
                "there is no specification `{name}`; there are {}",
                names.join(", ")
            ))
        })
    }
}

/// The environments of a task, which is an object with `servers`. Without it, all are there.
pub(crate) fn servers_of_task(
    servers: &Servers,
    task: &Value,
) -> Result<BTreeMap<String, Value>, Error> {
    let invalid = |reason: &str| Error::InvalidArguments(format!("the task: {reason}"));
    let Value::Object(task) = task else {
        return Err(invalid("it is not an object"));
    };
    if let Some(unknown) = task.keys().find(|key| *key != "servers") {
        return Err(invalid(&format!(
            "unknown key `{unknown}`; its only key is `servers`"
        )));
    }
    match task.get("servers") {
        None => Ok(servers
            .programs
            .keys()
            .map(|name| (name.clone(), Value::Null))
            .collect()),
        Some(Value::Object(named)) if !named.is_empty() => Ok(named
            .iter()
            .map(|(name, given)| (name.clone(), given.clone()))
            .collect()),
        Some(_) => Err(invalid(
            "`servers` is an object of at least one environment",
        )),
    }
}
