//! Stage 5, local deployment: a JSON schema and a Python function for each document, and the gold calls.

mod python;
mod schema;

use serde_json::{Map, Value, json};

use super::document::{Asked, Document, Function, Toolset};
use super::draw::root;
use super::options::{MAX_TOOLS, RowOptions};
use super::output::tools_text;
use super::question::{Question, Step, Work};
use super::rejection::{Check, Finding};
use super::row::{GoldCall, Row, RowTool};

/// Makes the row of a question. Distractors that would make the tools too long are left out. The error is the check that
/// the row fails.
pub fn deploy(toolset: Toolset, options: &RowOptions) -> Result<Row, Finding> {
    let key = root(options.seed)
        .named("deploy")
        .named(&toolset.question.id);
    let Toolset {
        question,
        documents,
        uses,
    } = toolset;
    let calls = question
        .steps
        .iter()
        .zip(&uses)
        .map(|(step, document)| gold_call(&question, step, documents.get(*document)))
        .collect::<Result<Vec<_>, _>>()?;
    let mut tools: Vec<RowTool> = documents
        .iter()
        .map(|document| RowTool {
            name: document.name.clone(),
            description: document.description.clone(),
            parameters: schema::schema(document),
            source: python::source(document, options.complexity, key.named(&document.name)),
            examples: examples(document),
        })
        .collect();
    let most = options.complexity.max_tool_characters();
    while tools.len() > MAX_TOOLS || tools_text(&tools).len() > most {
        let needed = |tool: &RowTool| calls.iter().any(|call| call.tool == tool.name);
        let Some(superfluous) = tools.iter().rposition(|tool| !needed(tool)) else {
            let (count, length) = (tools.len(), tools_text(&tools).len());
            return Err(Finding::new(
                Check::Size,
                format!(
                    "its {count} tools have {length} characters; {MAX_TOOLS} tools and {most} characters are allowed"
                ),
            ));
        };
        tools.remove(superfluous);
    }
    Ok(Row {
        given: question.given().into_iter().map(str::to_owned).collect(),
        id: question.id,
        scenario: question.scenario,
        split: question.split,
        question: question.question,
        answer: question.answer,
        tools,
        calls,
    })
}

fn gold_call(
    question: &Question,
    step: &Step,
    document: Option<&Document>,
) -> Result<GoldCall, Finding> {
    let malformed = |what: &str| Finding::malformed(format!("the step {:?} {what}", step.question));
    let document = document.ok_or_else(|| malformed("has no tool"))?;
    let values: Vec<&str> = step
        .sources
        .iter()
        .map(|source| question.value(source))
        .collect::<Option<_>>()
        .ok_or_else(|| malformed("needs a step that does not exist"))?;
    let arguments = match &step.work {
        Work::Lookup(lookup) => {
            let subject = values
                .first()
                .ok_or_else(|| malformed("is about nothing"))?;
            document.arguments(Asked::Attribute(subject, &lookup.relation))
        }
        Work::Calculate(operation) => {
            let numbers: Vec<Value> = values
                .iter()
                .map(|value| number(value))
                .collect::<Option<_>>()
                .ok_or_else(|| malformed("computes with something that is no number"))?;
            document.arguments(Asked::Operation(*operation, &numbers))
        }
    };
    Ok(GoldCall {
        question: step.question.clone(),
        tool: document.name.clone(),
        arguments,
        answer: step.answer.clone(),
    })
}

/// The number that a text states, if it states nothing else.
pub(crate) fn number(text: &str) -> Option<Value> {
    let plain = text.trim().replace(',', "");
    if let Ok(whole) = plain.parse::<i64>() {
        return Some(json!(whole));
    }
    let number = plain
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())?;
    Some(json!(number))
}

/// Arguments for every record of a tool.
fn examples(document: &Document) -> Vec<Map<String, Value>> {
    match &document.function {
        Function::Lookup(table) => table
            .records
            .iter()
            .map(|record| document.arguments(Asked::Attribute(&record.subject, &record.attribute)))
            .collect(),
        Function::Calculate => Vec::new(),
    }
}
