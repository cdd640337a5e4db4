//! The documentation of tools, as the stages pass it on, with the records of each tool.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::question::{Operation, Question};

/// A question with its tools. This is the artefact of stages 2 to 4.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toolset {
    /// The decomposed question.
    pub question: Question,
    /// The tools.
    pub documents: Vec<Document>,
    /// Index of the tool that answers each step.
    pub uses: Vec<usize>,
}

/// One tool: the text that a model reads about it, and its function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Its parameters, the required ones first.
    pub parameters: Vec<Parameter>,
    /// Its function.
    pub function: Function,
    /// The form of its results.
    pub form: Form,
    /// True if no step uses it.
    #[serde(default)]
    pub distractor: bool,
}

/// The function of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// The tool looks up records.
    Lookup(Table),
    /// The tool computes with numbers.
    Calculate,
}

/// The records of a look-up tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Kind of the subjects.
    pub kind: String,
    /// The things that it knows about a subject.
    pub attributes: Vec<Attribute>,
    /// The values that it knows.
    pub records: Vec<Record>,
}

/// Something that a tool knows about its subjects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attribute {
    /// Identifier of the attribute, as in arguments.
    pub name: String,
    /// The thing that is found, without a subject: `the mayor of a city`.
    pub about: String,
    /// The type of the values: `a number in metres`.
    pub gives: String,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The subject's name.
    pub subject: String,
    /// Name of the attribute.
    pub attribute: String,
    /// The value.
    pub value: String,
}

/// The form of a tool's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// The value alone.
    Plain,
    /// A sentence.
    Sentence,
    /// An object with the field `result`.
    Object,
}

/// A parameter of a tool, or a field of an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Its type.
    pub kind: ParameterKind,
    /// Its use.
    pub role: Role,
    /// True if a call must give it.
    #[serde(default)]
    pub required: bool,
    /// The value if it is not given.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub default: Value,
}

/// The type of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParameterKind {
    /// A text.
    Text,
    /// A list of texts.
    Texts,
    /// A list of at least two numbers.
    Numbers,
    /// An integer from the first to the second number.
    Integer(i64, i64),
    /// A number from 0 to 1.
    Share,
    /// True or false.
    Boolean,
    /// One of these texts.
    Choice(Vec<String>),
    /// A date, `YYYY-MM-DD`.
    Date,
    /// An object with these fields.
    Object(Vec<Parameter>),
}

/// The use of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The name of the subject, or the object that contains it.
    Subject,
    /// The kind of the subject, which has one value.
    Kind,
    /// The attribute that is looked up.
    Attribute,
    /// The numbers of a calculation.
    Numbers,
    /// The operation of a calculation.
    Operation,
    /// A switch for more words in the result.
    Details,
    /// The form of the result, `plain` or `json`.
    Format,
    /// An extra that the function checks and otherwise ignores.
    Extra,
}

/// The wish of a gold call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asked<'a> {
    /// An attribute of a subject.
    Attribute(&'a str, &'a str),
    /// An operation on numbers.
    Operation(Operation, &'a [Value]),
}

impl Document {
    /// The arguments of a call that asks for `asked`. Optional parameters are left out.
    pub(crate) fn arguments(&self, asked: Asked<'_>) -> Map<String, Value> {
        arguments(&self.parameters, asked)
    }

    /// The look-up table, if it has one.
    pub(crate) fn table(&self) -> Option<&Table> {
        match &self.function {
            Function::Lookup(table) => Some(table),
            Function::Calculate => None,
        }
    }

    /// The parameter with the subject's name, and the parameter that contains it, if one does.
    pub(crate) fn subject(&self) -> Option<(&Parameter, Option<&Parameter>)> {
        let outer = self
            .parameters
            .iter()
            .find(|one| one.role == Role::Subject)?;
        match &outer.kind {
            ParameterKind::Object(fields) => {
                let inner = fields.iter().find(|field| field.role == Role::Subject)?;
                Some((inner, Some(outer)))
            }
            _ => Some((outer, None)),
        }
    }
}

fn arguments(parameters: &[Parameter], asked: Asked<'_>) -> Map<String, Value> {
    let mut made = Map::new();
    for parameter in parameters.iter().filter(|parameter| parameter.required) {
        made.insert(parameter.name.clone(), argument(parameter, asked));
    }
    made
}

fn argument(parameter: &Parameter, asked: Asked<'_>) -> Value {
    if let ParameterKind::Object(fields) = &parameter.kind {
        return Value::Object(arguments(fields, asked));
    }
    match (parameter.role, asked) {
        (Role::Subject, Asked::Attribute(subject, _)) => match parameter.kind {
            ParameterKind::Texts => json!([subject]),
            _ => json!(subject),
        },
        (Role::Attribute, Asked::Attribute(_, attribute)) => json!(attribute),
        (Role::Numbers, Asked::Operation(_, numbers)) => json!(numbers),
        (Role::Operation, Asked::Operation(operation, _)) => json!(operation.as_str()),
        _ => match &parameter.kind {
            ParameterKind::Choice(values) => json!(values.first()),
            _ => parameter.default.clone(),
        },
    }
}
