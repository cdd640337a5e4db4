//! The questions to the model, and its summaries.

use rlf_plugin::Error;
use rlf_plugin::model::{self, Answer, Question};
use with_model::{DATA_RULE, cut, delimited, spoken, unanswered};

use crate::config::Config;
use crate::parts;

/// The wishes of a caller for a summary.
pub(crate) struct Brief<'a> {
    /// What the reader wants to know. It may be empty.
    pub(crate) about: &'a str,
    /// Maximum number of words.
    pub(crate) words: u32,
    /// The seed of the call.
    pub(crate) seed: u64,
    pub(crate) config: &'a Config,
}

impl Brief<'_> {
    /// Summarises a text of any length that the configuration allows. An error is for the calling model.
    pub(crate) fn summarise(&self, text: &str) -> Result<String, String> {
        let (max_chars, max_parts) = (self.config.max_chars, self.config.max_parts);
        let Some(parts) = parts::split(text, max_chars, max_parts) else {
            return Err(format!(
                "the text has {} characters, and may have {}; summarise it in pieces",
                text.chars().count(),
                max_chars * max_parts
            ));
        };
        if let [whole] = parts[..] {
            let summary = summary(model::ask_one(self.question("TEXT", "", whole)));
            return summary.map_err(|why| why.text);
        }
        self.summarise_parts(&parts).map_err(|why| {
            if !why.spent {
                return why.text;
            }
            let (text, questions) = (why.text, parts.len() + 1);
            format!("{text}; this text needs {questions} questions, and one of at most {max_chars} characters needs 1")
        })
    }

    fn summarise_parts(&self, parts: &[&str]) -> Result<String, Failure> {
        let count = parts.len();
        let questions: Vec<Question> = (1..)
            .zip(parts)
            .map(|(number, part)| self.question(&format!("PART {number} OF {count}"), "", part))
            .collect();
        // Together they must fit into one question.
        let room = self.config.max_chars / count;
        let summaries: Vec<String> = (1..)
            .zip(model::ask(&questions))
            .map(|(number, answer)| {
                let summary = cut(&summary(answer)?, room);
                Ok(format!("Part {number}:\n{summary}"))
            })
            .collect::<Result<_, _>>()?;
        let task = "The text is too long to be shown. These are summaries of its parts, in order. Summarise the whole \
                    text.\n\n";
        summary(model::ask_one(self.question(
            "SUMMARIES",
            task,
            &summaries.join("\n\n"),
        )))
    }

    /// A question that shows a text as data.
    fn question(&self, name: &str, task: &str, text: &str) -> Question {
        let about = match self.about {
            "" => String::new(),
            about => format!("The reader wants to know: {about}\n\n"),
        };
        let system = format!(
            "You summarise a text for a reader. Reply with the summary alone: at most {} words of plain text, in the \
             language of the text. Say nothing that the text does not say. {DATA_RULE}\n{}",
            self.words, self.config.instructions
        );
        Question::new(format!("{task}{about}{}", delimited(name, text, self.seed)))
            .system(system.trim_end())
            .model(&self.config.model)
            .max_tokens(self.config.max_tokens)
    }
}

/// The reason why there is no summary.
struct Failure {
    text: String,
    /// A budget of the operator's is spent.
    spent: bool,
}

fn summary(answer: Result<Answer, Error>) -> Result<String, Failure> {
    let answer = answer.map_err(|error| Failure {
        text: unanswered(&error),
        spent: matches!(error, Error::Exhausted(_)),
    })?;
    match spoken(&answer.text) {
        "" => Err(Failure {
            text: "the language model gave no summary".to_owned(),
            spent: false,
        }),
        summary if answer.cut_short => Ok(format!("{summary} ...")),
        summary => Ok(summary.to_owned()),
    }
}
