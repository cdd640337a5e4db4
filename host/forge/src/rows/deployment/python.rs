//! Python functions of documents. A function needs nothing besides its own body: FTRL's executor shows it neither
//! imports nor definitions at the top of its source.

use rlf_random::Key;
use serde_json::{Value, json};

use crate::rows::document::{Document, Form, Function, Parameter, ParameterKind, Role, Table};
use crate::rows::draw::{chance, pick};
use crate::rows::options::Complexity;

/// Maximum number of parameters that a docstring describes, so that no function is longer than published ones.
const MAX_DESCRIBED: usize = 7;

/// The source of a document's function.
pub(super) fn source(document: &Document, complexity: Complexity, key: Key) -> String {
    let mut writer = Writer {
        lines: Vec::new(),
        as_object: complexity == Complexity::Published && chance(key.named("errors"), 0.3),
        imports: chance(key.named("imports"), 0.4),
    };
    let parameters: Vec<String> = document.parameters.iter().map(signature).collect();
    writer.add(
        0,
        format!("def {}({}):", document.name, parameters.join(", ")),
    );
    let few = document.parameters.len() <= MAX_DESCRIBED;
    let long = few && complexity == Complexity::Published && chance(key.named("docstring"), 0.5);
    writer.docstring(document, long);
    for parameter in &document.parameters {
        writer.validate(parameter, long);
    }
    match &document.function {
        Function::Lookup(table) => writer.look_up(document, table, key),
        Function::Calculate => writer.calculate(document),
    }
    writer.give(document, key.named("sentence"));
    writer.lines.join("\n") + "\n"
}

/// Writes a parameter in the function's head.
fn signature(parameter: &Parameter) -> String {
    if parameter.required {
        parameter.name.clone()
    } else {
        format!("{}={}", parameter.name, literal(&parameter.default))
    }
}

/// A JSON value as a Python literal.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields: Vec<String> = fields
                .map(|(name, value)| format!("{}: {}", json!(name), literal(value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        // Python reads JSON's texts and numbers as they are.
        other => other.to_string(),
    }
}

fn text(text: &str) -> String {
    literal(&json!(text))
}

struct Writer {
    lines: Vec<String>,
    /// True if errors are objects with the field `error`.
    as_object: bool,
    /// True if dates are checked by a module of the library.
    imports: bool,
}

impl Writer {
    fn add(&mut self, depth: usize, line: impl AsRef<str>) {
        let line = line.as_ref();
        self.lines.push(if line.is_empty() {
            String::new()
        } else {
            format!("{}{line}", "    ".repeat(depth))
        });
    }

    fn fail(&mut self, depth: usize, message: &str) {
        let line = if self.as_object {
            format!("return {{\"error\": {}}}", text(message))
        } else {
            format!("return {}", text(&format!("Error: {message}")))
        };
        self.add(depth, line);
    }

    fn docstring(&mut self, document: &Document, long: bool) {
        let description = safe(&document.description);
        if !long {
            let first = description
                .split_once(". ")
                .map_or(description.as_str(), |(first, _)| first);
            let end = if first.ends_with('.') { "" } else { "." };
            self.add(1, format!("\"\"\"{first}{end}\"\"\""));
            return;
        }
        self.add(1, "\"\"\"");
        self.add(1, &description);
        self.add(1, "");
        self.add(1, "Parameters:");
        for parameter in &document.parameters {
            let (name, kind) = (&parameter.name, python_type(&parameter.kind));
            let optional = if parameter.required { "" } else { ", optional" };
            let description = safe(&parameter.description);
            self.add(1, format!("- {name} ({kind}{optional}): {description}"));
        }
        self.add(1, "");
        self.add(1, "Returns:");
        self.add(
            1,
            "- The result, or a message that says which argument is wrong.",
        );
        self.add(1, "\"\"\"");
    }

    /// Writes the check of one argument, and the assignment of the subject.
    fn validate(&mut self, parameter: &Parameter, commented: bool) {
        let name = parameter.name.as_str();
        if commented && parameter.required {
            self.add(1, format!("# Validate {name}"));
        }
        let depth = if parameter.required || !parameter.default.is_null() {
            1
        } else {
            self.add(1, format!("if {name} is not None:"));
            2
        };
        self.check(depth, name, &format!("'{name}'"), &parameter.kind);
        if parameter.role == Role::Subject {
            match &parameter.kind {
                ParameterKind::Texts => {
                    self.add(
                        1,
                        format!("subjects = [one.strip().lower() for one in {name}]"),
                    );
                }
                ParameterKind::Object(fields) => {
                    let inner = fields.iter().find(|field| field.role == Role::Subject);
                    let field = inner.map_or("name", |field| field.name.as_str());
                    self.add(
                        1,
                        format!("subject = {name}[{}].strip().lower()", text(field)),
                    );
                }
                _ => self.add(1, format!("subject = {name}.strip().lower()")),
            }
        }
    }

    /// Refuses a value that is not of the type. `value` is a Python expression, `shown` its name in messages.
    fn check(&mut self, depth: usize, value: &str, shown: &str, kind: &ParameterKind) {
        let (refused, message) = match kind {
            ParameterKind::Text => (
                format!("not isinstance({value}, str) or not {value}.strip()"),
                format!("{shown} has to be a text that is not empty."),
            ),
            ParameterKind::Texts => (
                format!(
                    "not isinstance({value}, list) or not {value} or not all(isinstance(one, str) for one in {value})"
                ),
                format!("{shown} has to be a list of texts, with at least one."),
            ),
            ParameterKind::Numbers => (
                format!(
                    "not isinstance({value}, list) or len({value}) < 2 or not all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in {value})"
                ),
                format!(
                    "{shown} has to be a list of at least two numbers, without quotes and without units."
                ),
            ),
            ParameterKind::Integer(least, most) => (
                format!(
                    "isinstance({value}, bool) or not isinstance({value}, int) or not {least} <= {value} <= {most}"
                ),
                format!("{shown} has to be an integer from {least} to {most}."),
            ),
            ParameterKind::Share => (
                format!(
                    "isinstance({value}, bool) or not isinstance({value}, (int, float)) or not 0 <= {value} <= 1"
                ),
                format!("{shown} has to be a number from 0 to 1."),
            ),
            ParameterKind::Boolean => (
                format!("not isinstance({value}, bool)"),
                format!("{shown} has to be true or false."),
            ),
            ParameterKind::Choice(values) => (
                format!("{value} not in {}", literal(&json!(values))),
                format!("{shown} has to be one of: {}.", values.join(", ")),
            ),
            ParameterKind::Date => return self.check_date(depth, value, shown),
            ParameterKind::Object(fields) => return self.check_object(depth, value, shown, fields),
        };
        self.add(depth, format!("if {refused}:"));
        self.fail(depth + 1, &message);
    }

    fn check_date(&mut self, depth: usize, value: &str, shown: &str) {
        let message = format!("{shown} has to be a date in YYYY-MM-DD format.");
        if !self.imports {
            let digits = format!("{value}.replace(\"-\", \"\").isdigit()");
            self.add(
                depth,
                format!("if not isinstance({value}, str) or [len(part) for part in {value}.split(\"-\")] != [4, 2, 2] or not {digits}:"),
            );
            return self.fail(depth + 1, &message);
        }
        self.add(depth, "from datetime import date");
        self.add(depth, "try:");
        self.add(depth + 1, format!("date.fromisoformat({value})"));
        self.add(depth, "except (TypeError, ValueError):");
        self.fail(depth + 1, &message);
    }

    fn check_object(&mut self, depth: usize, value: &str, shown: &str, fields: &[Parameter]) {
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        let needed = literal(&json!(names));
        self.add(
            depth,
            format!("if not isinstance({value}, dict) or any(field not in {value} for field in {needed}):"),
        );
        self.fail(
            depth + 1,
            &format!(
                "{shown} has to be an object with the fields: {}.",
                names.join(", ")
            ),
        );
        for field in fields {
            let value = format!("{value}[{}]", text(&field.name));
            let shown = format!("{} of {shown}", field.name);
            self.check(depth, &value, &shown, &field.kind);
        }
    }

    fn look_up(&mut self, document: &Document, table: &Table, key: Key) {
        let attribute = document
            .parameters
            .iter()
            .find(|one| one.role == Role::Attribute);
        let record = |subject: &str, name: &str| match attribute {
            Some(_) => format!("({}, {})", text(subject), text(name)),
            None => text(subject),
        };
        let asked = |subject: &str| match attribute {
            Some(parameter) => format!("({subject}, {})", parameter.name),
            None => subject.to_owned(),
        };
        self.add(1, "records = {");
        let mut records: Vec<_> = table.records.iter().collect();
        key.named("order").shuffle(&mut records);
        for one in records {
            let place = record(&one.subject.trim().to_lowercase(), &one.attribute);
            self.add(2, format!("{place}: {},", text(&one.value)));
        }
        self.add(1, "}");
        let takes_several = document
            .subject()
            .is_some_and(|(inner, _)| inner.kind == ParameterKind::Texts);
        if takes_several {
            let asked = asked("one");
            self.add(
                1,
                format!("found = [records[{asked}] for one in subjects if {asked} in records]"),
            );
            self.add(1, "found = \", \".join(found) if found else None");
        } else {
            self.add(1, format!("found = records.get({})", asked("subject")));
        }
        self.add(1, "if found is None:");
        let message = format!(
            "No record was found. Check the spelling of the {}, and use the full name as the question or an earlier result has it.",
            table.kind.replace('_', " ")
        );
        self.fail(2, &message);
    }

    fn calculate(&mut self, document: &Document) {
        let name = |role: Role| {
            let found = document.parameters.iter().find(|one| one.role == role);
            found.map_or("values", |one| one.name.as_str())
        };
        let (numbers, operation) = (name(Role::Numbers), name(Role::Operation));
        self.add(1, format!("if {operation} == \"sum\":"));
        self.add(2, format!("found = sum({numbers})"));
        self.add(1, format!("elif {operation} == \"difference\":"));
        self.add(2, format!("found = max({numbers}) - min({numbers})"));
        self.add(1, "else:");
        self.add(2, "found = 1");
        self.add(2, format!("for number in {numbers}:"));
        self.add(3, "found *= number");
        self.add(1, "if isinstance(found, float) and found.is_integer():");
        self.add(2, "found = int(found)");
    }

    /// Writes the result in the document's form.
    fn give(&mut self, document: &Document, key: Key) {
        let parameter = |role: Role| document.parameters.iter().find(|one| one.role == role);
        if let Some(format) = parameter(Role::Format) {
            self.add(1, format!("if {} == \"json\":", format.name));
            self.add(2, "return {\"result\": found}");
        }
        if let Some(details) = parameter(Role::Details) {
            self.add(1, format!("if {}:", details.name));
            self.add(
                2,
                "return f\"{found} (from the register that this tool reads)\"",
            );
        }
        let sentences = [
            "return f\"The result is {found}.\"",
            "return f\"According to the records, it is {found}.\"",
            "return f\"Found: {found}\"",
        ];
        match document.form {
            Form::Plain => self.add(1, "return found"),
            Form::Sentence => self.add(1, pick(key, &sentences).copied().unwrap_or("return found")),
            Form::Object => self.add(1, "return {\"result\": found}"),
        }
    }
}

/// Makes text safe to be inside a docstring.
fn safe(text: &str) -> String {
    text.replace('\\', "/")
        .replace("\"\"\"", "'''")
        .replace('\n', " ")
}

fn python_type(kind: &ParameterKind) -> &'static str {
    match kind {
        ParameterKind::Text | ParameterKind::Choice(_) | ParameterKind::Date => "str",
        ParameterKind::Texts | ParameterKind::Numbers => "list",
        ParameterKind::Integer(..) => "int",
        ParameterKind::Share => "float",
        ParameterKind::Boolean => "bool",
        ParameterKind::Object(_) => "dict",
    }
}
