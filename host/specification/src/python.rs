//! Export to one Python file in EnvFactory's form: pydantic models, a class with the state and a method for each
//! operation, FastMCP wrappers that validate, and `mcp.run()`.
//!
//! The file behaves as the specification does: the same results, the same messages, the same states. The messages about
//! arguments that do not fit are FastMCP's own. Nothing bounds the work of a call.

mod expression;
mod operation;

use std::fmt::Write as _;

use serde_json::Value as Json;

use crate::error::StateError;
use crate::model::{Field, Size, Type};
use crate::program::Program;
use crate::python::expression::Names;
use crate::state_json::next_name;

/// The first part of every exported file: arithmetic, dates and messages as the specification has them.
const RUNTIME: &str = include_str!("python/runtime.py");

impl Program {
    /// The environment as the text of a Python file, which belongs into `NAME.py`.
    ///
    /// It begins in the first scenario, and it is an error if no state of it can be generated.
    pub fn to_python(&self) -> Result<String, StateError> {
        let specification = &self.specification;
        let name = &specification.name;
        let mut out = String::new();
        let description = docstring(&specification.description);
        let _ = writeln!(out, "{description}\n\n{}", RUNTIME.trim_end());
        let mut models = Vec::new();
        for (index, entity) in specification.entities.iter().enumerate() {
            let class = self.class(index);
            let _ = writeln!(
                out,
                "\n\nclass {class}(BaseModel):\n    {}\n",
                docstring(&entity.description)
            );
            let key = described(&entity.key.description);
            let _ = writeln!(out, "    {}: str = Field(...{key})", entity.key.name);
            for field in &entity.fields {
                let _ = writeln!(out, "    {}", declaration(field));
            }
            models.push(class);
        }
        let _ = writeln!(
            out,
            "\n\nclass {name}Scenario(BaseModel):\n    \"\"\"Everything that {name} knows.\"\"\"\n"
        );
        for value in &specification.values {
            let _ = writeln!(out, "    {}", declaration(value));
        }
        for (index, entity) in specification.entities.iter().enumerate() {
            let _ = writeln!(
                out,
                "    {}: Dict[str, {}] = Field(default_factory=dict{})",
                entity.collection,
                self.class(index),
                described(&entity.description)
            );
            if self.counted[index] {
                let _ = writeln!(
                    out,
                    "    {}: int = Field(default=1, ge=1, description=\"Number in the next key\")",
                    next_name(&entity.name)
                );
            }
        }
        models.push(format!("{name}Scenario"));
        let _ = writeln!(out, "\n\nScenario_Schema = [{}]\n", models.join(", "));
        let first = specification
            .scenarios
            .first()
            .map_or(Size::Simple, |one| one.size);
        let initial = self.state_json(&self.open(first, 0)?);
        let _ = writeln!(out, "INITIAL = {}\n", literal(&initial));
        self.tables(&mut out);
        self.class_body(&mut out);
        let _ = writeln!(
            out,
            "\n\nmcp = FastMCP(name=\"{name}\")\napi = {name}()\n\n\n@mcp.tool()\ndef load_scenario(scenario: dict) -> str:\n    \
             \"\"\"Replace the whole state.\"\"\"\n    api.load_scenario(scenario)\n    return \"loaded\"\n\n\n@mcp.tool()\n\
             def save_scenario() -> dict:\n    \"\"\"The whole state.\"\"\"\n    return api.save_scenario()"
        );
        for operation in &specification.operations {
            operation::wrapper(operation, &mut out);
        }
        out.push_str("\n\nif __name__ == \"__main__\":\n    mcp.run()\n");
        Ok(out)
    }

    /// The name of an entity's model. It ends in `Record`, as nothing else in the file does, except perhaps the name of
    /// the environment. A number follows if the name is taken.
    fn class(&self, entity: usize) -> String {
        let specification = &self.specification;
        let mut taken = vec![specification.name.clone()];
        for entity in &specification.entities[..=entity] {
            let mut class = String::new();
            for word in entity.name.split('_') {
                let mut letters = word.chars();
                class.extend(letters.next().map(|first| first.to_ascii_uppercase()));
                class.push_str(letters.as_str());
            }
            class.push_str("Record");
            let mut free = class.clone();
            for number in 2.. {
                if !taken.contains(&free) {
                    break;
                }
                free = format!("{class}{number}");
            }
            taken.push(free);
        }
        taken.pop().unwrap_or_default()
    }

    /// Writes the limits, targets and unique fields, as `_broken_rule` reads them.
    fn tables(&self, out: &mut String) {
        let specification = &self.specification;
        let rule = |field: &Field| {
            let limit = |limit: &Option<serde_json::Number>| {
                limit
                    .as_ref()
                    .map_or("None".to_owned(), ToString::to_string)
            };
            let target = field.kind.referenced().and_then(|name| {
                let entity = specification
                    .entities
                    .iter()
                    .find(|entity| entity.name == name)?;
                Some(format!("\"{}\"", entity.collection))
            });
            format!(
                "{}, {}, {}, {}",
                limit(&field.minimum),
                limit(&field.maximum),
                target.unwrap_or_else(|| "None".to_owned()),
                if field.unique { "True" } else { "False" }
            )
        };
        out.push_str("# Name, minimum, maximum, collection of the targets, unique.\n_VALUES = [\n");
        for value in &specification.values {
            let _ = writeln!(out, "    (\"{}\", {}),", value.name, rule(value));
        }
        out.push_str("]\n# Collection, entity, key, and the same for each field.\n_FIELDS = [\n");
        for entity in &specification.entities {
            let _ = writeln!(
                out,
                "    (\"{}\", \"{}\", \"{}\", [",
                entity.collection, entity.name, entity.key.name
            );
            for field in &entity.fields {
                let _ = writeln!(out, "        (\"{}\", {}),", field.name, rule(field));
            }
            out.push_str("    ]),\n");
        }
        out.push_str(
            "]\n# Entity, collection, prefix of the keys that are counted.\n_COUNTED = [\n",
        );
        for (entity, counted) in specification.entities.iter().zip(&self.counted) {
            if *counted {
                let prefix = literal(&Json::from(entity.key.prefix.as_str()));
                let _ = writeln!(
                    out,
                    "    (\"{}\", \"{}\", {prefix}),",
                    entity.name, entity.collection
                );
            }
        }
        out.push_str("]\n");
    }

    fn class_body(&self, out: &mut String) {
        let name = &self.specification.name;
        let _ = writeln!(
            out,
            "\n\nclass {name}:\n    \"\"\"The state and its rules; a method that raises has changed nothing.\"\"\"\n\n    \
             def __init__(self):\n        self.load_scenario(INITIAL)\n\n    \
             def load_scenario(self, scenario: dict) -> None:\n        before = getattr(self, \"state\", None)\n        \
             self.state = {name}Scenario(**scenario)\n        try:\n            _check_keys(self.state, _FIELDS)\n            \
             _count(self.state, _COUNTED)\n            self._check()\n        except Exception:\n            \
             self.state = before\n            raise\n\n    \
             def save_scenario(self) -> dict:\n        return self.state.model_dump()\n\n    \
             def _invariants(self):\n        \"\"\"Names of invariants, and whether they hold.\"\"\""
        );
        if self.rules.is_empty() {
            out.push_str("        return iter(())\n");
        }
        for rule in &self.rules {
            let mut names = Names::new(&self.schema);
            let rule_name = literal(&Json::from(rule.name.as_str()));
            let _ = writeln!(
                out,
                "        yield {rule_name}, lambda: {}",
                names.python(&rule.holds)
            );
        }
        out.push_str(
            "\n    def _check(self):\n        broken = _broken_rule(self.state, _VALUES, _FIELDS, self._invariants())\n        \
             if broken is not None:\n            raise ValueError(f\"{_UNDONE}it breaks the rule `{broken}`\")\n",
        );
        for (operation, compiled) in self.specification.operations.iter().zip(&self.operations) {
            self.method(operation, compiled, out);
        }
    }
}

/// A field of a model. Limits are rules of the state, checked after each operation.
fn declaration(field: &Field) -> String {
    let kind = annotation(&field.kind, field.optional);
    let default = if field.optional {
        "default=None"
    } else {
        "..."
    };
    format!(
        "{}: {kind} = Field({default}{})",
        field.name,
        described(&field.description)
    )
}

/// The annotation of a type.
fn annotation(kind: &Type, optional: bool) -> String {
    let plain = match kind {
        Type::Text | Type::Date | Type::Reference(_) => "str".to_owned(),
        Type::Integer => "int".to_owned(),
        Type::Number => "float".to_owned(),
        Type::Boolean => "bool".to_owned(),
        Type::Enumeration(values) => {
            let values: Vec<String> = values
                .iter()
                .map(|one| literal(&Json::from(one.as_str())))
                .collect();
            format!("Literal[{}]", values.join(", "))
        }
        Type::List(item) => format!("List[{}]", annotation(item, false)),
    };
    if optional {
        format!("Optional[{plain}]")
    } else {
        plain
    }
}

fn described(description: &str) -> String {
    if description.is_empty() {
        String::new()
    } else {
        format!(", description={}", literal(&Json::from(description)))
    }
}

/// A JSON value as Python writes it.
fn literal(json: &Json) -> String {
    match json {
        Json::Null => "None".to_owned(),
        Json::Bool(true) => "True".to_owned(),
        Json::Bool(false) => "False".to_owned(),
        // The escapes of JSON are escapes of Python too.
        Json::Number(_) | Json::String(_) => json.to_string(),
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| {
                    format!(
                        "{}: {}",
                        literal(&Json::from(name.as_str())),
                        literal(value)
                    )
                })
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

fn docstring(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"\"\"{}\"\"\"", text.trim())
}
