//! The questions to the model, and what becomes of its replies.

use rlf_plugin::model::{self, Answer, Question};
use rlf_plugin::serde_json::{Map, Value};
use rlf_plugin::{Error, IntoObservation as _, Observation};
use with_model::{DATA_RULE, delimited, follow_up, unanswered};

use crate::config::Config;
use crate::fields::{Fields, NOT_FOUND};
use crate::values;
use crate::verbatim::FoldedText;

/// Stands for a reply that the host refused because of its form.
const REFUSED: &str = "(a reply of another form)";

/// The reason that the model is told if the host refused its reply. The host's own words quote the reply.
const MISFIT: &str = "it does not have the form of the system message";

/// Values for all fields.
struct Found {
    values: Map<String, Value>,
    /// Names of the fields whose value is not in the text.
    made_up: Vec<String>,
}

/// Finds the values of the fields in a text, with at most two questions. An error is for the calling model.
pub(crate) fn find(
    text: &str,
    fields: &Fields,
    seed: u64,
    config: &Config,
) -> Result<Observation, String> {
    let folded = config.verbatim.then(|| FoldedText::new(text));
    let read = |answer: &Answer| {
        values::read(answer, fields).map(|values| Found::compare(values, folded.as_ref()))
    };
    let question = first_question(text, fields, seed, config);
    let (first, found) = match model::ask_one(question.clone()) {
        Ok(answer) => {
            let found = read(&answer);
            (answer, found)
        }
        Err(Error::Unavailable(_)) => (Answer::text(REFUSED), Err(MISFIT.to_owned())),
        Err(error) => return Err(unanswered(&error)),
    };
    let (before, wrong) = match found {
        Ok(found) if found.made_up.is_empty() => return Ok(found.into_observation(1)),
        Ok(found) => {
            let names = found.made_up.join(", ");
            let wrong = format!("the text does not contain the values of {names}, word for word");
            (Some(found), wrong)
        }
        Err(wrong) => (None, wrong),
    };
    let next = format!(
        "Your reply cannot be used: {wrong}. Reply again, with the JSON object alone. A field is null if the text does \
         not say it."
    );
    let second = match model::ask_one(follow_up(question, &first, &next)) {
        Ok(answer) => read(&answer)
            .map_err(|wrong| format!("the language model gave no usable reply: {wrong}")),
        Err(error) => Err(unanswered(&error)),
    };
    match (second, before) {
        // Without a second reply, the first one is as good as it was: what the text does not contain is left out.
        (Ok(found), _) | (Err(_), Some(found)) => Ok(found.into_observation(2)),
        (Err(why), None) => Err(why),
    }
}

fn first_question(text: &str, fields: &Fields, seed: u64, config: &Config) -> Question {
    let strings = if config.verbatim {
        "Copy strings from the text word for word. "
    } else {
        ""
    };
    let system = format!(
        "You find facts in a text. Reply with one JSON object and nothing else. It has exactly the fields that you are \
         asked for. A value is a string, a number, a boolean, a list of these, or null if the text does not say it. \
         {strings}{DATA_RULE}\n{}",
        config.instructions
    );
    let user = format!(
        "The fields, and what to find for each: {}\n\n{}",
        fields.to_json(),
        delimited("TEXT", text, seed)
    );
    Question::new(user)
        .system(system.trim_end())
        .model(&config.model)
        .max_tokens(config.max_tokens)
        .schema(&fields.schema())
}

impl Found {
    fn compare(values: Map<String, Value>, text: Option<&FoldedText>) -> Self {
        let not_in_text = |value: &Value| text.is_some_and(|text| !text.contains(value));
        let made_up = values
            .iter()
            .filter(|(_, value)| not_in_text(value))
            .map(|(name, _)| name.clone())
            .collect();
        Self { values, made_up }
    }

    /// The values. Those that are not in the text are null and listed.
    fn into_observation(self, questions: u32) -> Observation {
        let Self {
            mut values,
            made_up,
        } = self;
        let count = made_up.len();
        for name in &made_up {
            values.insert(name.clone(), Value::Null);
        }
        if count > 0 {
            values.insert(NOT_FOUND.to_owned(), made_up.into());
        }
        Value::Object(values)
            .into_observation()
            .metric("questions", f64::from(questions))
            .metric("not_found", count as f64)
    }
}
