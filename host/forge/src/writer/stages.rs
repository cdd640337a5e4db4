//! The stages before the first verification: sketch, plan, text, scenarios. Each is one question.

use rlf_endpoint::ChatMessage;
use serde_json::{Value, json};

use super::Writer;
use super::candidate::{
    Candidate, Form, Source, StateScenarios, python, specification, specification_scenarios,
    state_scenarios, with_scenarios,
};
use super::plan::{Plan, Sketch};
use super::prompt_set::example;
use crate::ask::prompts::{PromptError, Prompts};
use crate::ask::{Question, schema_of};

/// The sketch's question.
pub(super) fn sketch_question(
    prompts: &Prompts,
    description: &str,
) -> Result<Question, PromptError> {
    let schema = pretty(&schema_of::<Sketch>());
    let values = [("description", description), ("schema", &schema)];
    question(prompts, "sketch", &values)
}

/// The plan's question.
pub(super) fn plan_question(
    prompts: &Prompts,
    description: &str,
    sketch: &str,
) -> Result<Question, PromptError> {
    let schema = pretty(&schema_of::<Plan>());
    let values = [
        ("description", description),
        ("sketch", sketch),
        ("schema", &schema),
    ];
    question(prompts, "plan", &values)
}

/// The question for the environment's text.
pub(super) fn source_question(
    prompts: &Prompts,
    form: Form,
    name: &str,
    (sketch, plan): (&str, &str),
) -> Result<Question, PromptError> {
    let values = [
        ("name", name),
        ("sketch", sketch),
        ("plan", plan),
        ("format", &format_of(prompts, form)?),
        ("example", example(form)),
    ];
    question(prompts, form.name(), &values)
}

/// The description of a form for prompts. Python needs none.
pub(super) fn format_of(prompts: &Prompts, form: Form) -> Result<String, PromptError> {
    match form {
        Form::Specification => prompts.render("format", &[]),
        Form::Python => Ok(String::new()),
    }
}

/// The scenarios' question.
pub(super) fn scenarios_question(
    prompts: &Prompts,
    form: Form,
    name: &str,
    file: &str,
) -> Result<Question, PromptError> {
    let schema = match form {
        Form::Specification => String::new(),
        Form::Python => pretty(&schema_of::<StateScenarios>()),
    };
    let values = [("name", name), ("file", file), ("schema", &schema)];
    question(prompts, &format!("scenarios-{}", form.name()), &values)
}

/// A prompt as a question after the system prompt.
pub(super) fn question(
    prompts: &Prompts,
    name: &str,
    values: &[(&str, &str)],
) -> Result<Question, PromptError> {
    let messages = vec![
        ChatMessage::system(prompts.render("system", &[])?),
        ChatMessage::user(prompts.render(name, values)?),
    ];
    Ok(Question::new(name, messages))
}

pub(super) fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

/// The results of the stages.
pub(super) struct Drafted {
    pub(super) plan: Plan,
    pub(super) candidate: Candidate,
}

impl Writer<'_> {
    /// Goes through the stages.
    pub(super) async fn draft(
        &self,
        description: &str,
        form: Form,
    ) -> Result<Drafted, super::WriteError> {
        let asker = self.asker;
        let asked = sketch_question(self.prompts, description)?;
        let sketch: Sketch = asker.json(&asked, Ok).await?;
        let sketched = pretty(&json!(sketch));
        let asked = plan_question(self.prompts, description, &sketched)?;
        let plan: Plan = asker
            .json(&asked, |plan: Plan| plan.check().map(|()| plan))
            .await?;
        let planned = pretty(&json!(plan));
        let name = sketch.name;
        let asked = source_question(self.prompts, form, &name, (&sketched, &planned))?;
        let source = match form {
            Form::Specification => {
                let (text, format) = asker.text(&asked, specification).await?;
                let asked = scenarios_question(self.prompts, form, &name, &text)?;
                let whole = asker.text(&asked, |answer| {
                    with_scenarios(&text, format, specification_scenarios(answer)?)
                });
                let text = whole.await?;
                Source::Specification { text, format }
            }
            Form::Python => {
                let code = asker.text(&asked, python).await?;
                let asked = scenarios_question(self.prompts, form, &name, &code)?;
                let scenarios = asker.json(&asked, state_scenarios).await?;
                Source::Python { code, scenarios }
            }
        };
        let candidate = Candidate { name, source };
        Ok(Drafted { plan, candidate })
    }
}
