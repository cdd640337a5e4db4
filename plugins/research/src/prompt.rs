//! The messages to the model.

use rlf_plugin::model::Question;
use with_model::{DATA_RULE, delimited};

use crate::config::Config;
use crate::offer::Offer;

/// The text that the last question adds to the results.
pub(crate) const CONCLUDE: &str = r#"No more calls are possible. Reply now with {"answer": "..", "sources": [".."]}.
Answer from your notes and from the results above. If they do not answer the question, say what is missing."#;

/// The question with which a step begins: the rules, the tools, what the caller asks and the notes so far.
pub(crate) fn question(
    asked: &str,
    notes: &[String],
    offer: &Offer,
    seed: u64,
    config: &Config,
) -> Question {
    let user = if notes.is_empty() {
        format!("The question: {asked}\n\nYou have no notes yet.")
    } else {
        // The model wrote them, but from data.
        let notes = delimited("NOTES", &listed(notes), seed);
        format!("The question: {asked}\n\nYour notes so far:\n{notes}")
    };
    Question::new(user)
        .system(rules(offer, config))
        .model(&config.model)
        .max_tokens(config.max_tokens)
}

fn rules(offer: &Offer, config: &Config) -> String {
    let instructions = match &*config.instructions {
        "" => String::new(),
        instructions => format!("{instructions}\n"),
    };
    format!(
        r#"You answer a question by calling tools. Reply with one JSON object and nothing else, in one of two forms:
{{"calls": [{{"tool": "NAME", "arguments": {{..}}}}], "note": ".."}} calls 1 to {} tools, all at once.
{{"answer": "..", "sources": [".."]}} ends the work.
You see results only once. So write into `note` what you learned from the last results: only your notes are kept.
Answer as soon as you can, and only from what the tools found. `sources` names where it is from, as the results do.
{DATA_RULE}
{instructions}
The tools:
{}"#,
        config.max_calls_per_step,
        offer.described()
    )
}

/// The text that the model reads after a reply that cannot be used.
pub(crate) fn correction(wrong: &str) -> String {
    format!("Your reply cannot be used: {wrong}. Reply again, in one of the two forms.")
}

/// The notes, one on a line.
pub(crate) fn listed(notes: &[String]) -> String {
    let lines: Vec<String> = notes.iter().map(|note| format!("- {note}")).collect();
    lines.join("\n")
}
