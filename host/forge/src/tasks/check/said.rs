//! The text says every value that a request depends on, and none that the model has to find out.

use serde_json::Value;

use crate::graph::{Tool, ValueType};
use crate::tasks::make::items;
use crate::tasks::record::TaskRecord;
use crate::tasks::rejection::{Reason, Rejection};
use crate::tasks::request::Mention;
use crate::tasks::suite::Suite;
use crate::tasks::text::{openings, spoken};

/// True if a text contains a value, as a word or words of its own.
pub(in crate::tasks) fn says(text: &str, value: &Value) -> bool {
    times_said(text, value) > 0
}

/// Number of places at which a text contains a value, as a word or words of its own. Of a list it is the number for the
/// item that is there least often.
pub(in crate::tasks) fn times_said(text: &str, value: &Value) -> usize {
    match value {
        Value::Array(items) => {
            let times = items.iter().map(|item| times_said(text, item));
            times.min().unwrap_or(1)
        }
        Value::Null | Value::Object(_) => 0,
        scalar => {
            let wanted = spoken(scalar).to_lowercase();
            let text = text.to_lowercase();
            let inside = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
            // 5 is in none of 1.5, 5.5 and -5, but it may end a sentence.
            let part_of_number = |before: &str, after: &str| {
                let digit = |letter: Option<char>| letter.is_some_and(|one| one.is_ascii_digit());
                let mut behind = before.chars().rev();
                let mut ahead = after.chars();
                let continues = match behind.next() {
                    Some('-') => true,
                    Some('.') => digit(behind.next()),
                    _ => false,
                };
                let goes_on = matches!(ahead.next(), Some('.' | '-')) && digit(ahead.next());
                scalar.is_number() && (continues || goes_on)
            };
            if wanted.is_empty() {
                return 0;
            }
            let places = text.match_indices(&wanted).filter(|(at, _)| {
                let (before, after) = (&text[..*at], &text[at + wanted.len()..]);
                !inside(before.chars().next_back())
                    && !inside(after.chars().next())
                    && !part_of_number(before, after)
            });
            places.count()
        }
    }
}

/// Checks that every request, and every value of it, is in the text of its turn.
pub(super) fn everything(suite: &Suite, task: &TaskRecord) -> Result<(), Rejection> {
    for (number, turn) in task.turns.iter().enumerate() {
        let text: Vec<String> = words(&turn.query).collect();
        let requested = turn.requests.iter();
        let requested = requested.filter_map(|request| suite.tool(&request.tool));
        let all: Vec<Vec<Vec<String>>> = requested
            .map(phrases)
            .filter(|phrases| !phrases.is_empty())
            .collect();
        // One verb does not ask for two things.
        let has_all_verbs = places(&text, &all.concat()) >= all.len();
        for request in &turn.requests {
            let values = request.arguments.values().flat_map(Mention::values);
            if let Some(missing) = values.into_iter().find(|value| !says(&turn.query, value)) {
                let detail = format!(
                    "turn {}: the request for {} needs {missing}, which the text does not say",
                    number + 1,
                    request.tool
                );
                return Err(Rejection::new(Reason::Unsaid, detail));
            }
            let Some(tool) = suite.tool(&request.tool) else {
                continue;
            };
            let mut telling = telling(&tool.description).peekable();
            let is_said = telling.peek().is_none()
                || telling.any(|word| text.contains(&word))
                || (has_all_verbs && places(&text, &phrases(tool)) > 0);
            if !is_said {
                let detail = format!(
                    "turn {}: the text does not ask for {}",
                    number + 1,
                    request.tool
                );
                return Err(Rejection::new(Reason::Unsaid, detail));
            }
        }
    }
    Ok(())
}

/// Minimum number of letters of a word that can tell what a description asks for.
const TELLING: usize = 3;
/// Words of so many letters that tell nothing: they are in texts of every kind.
const STOP_WORDS: [&str; 67] = [
    "about", "all", "also", "and", "any", "are", "been", "but", "can", "did", "does", "each",
    "for", "from", "given", "had", "has", "have", "her", "him", "his", "how", "into", "its", "may",
    "more", "most", "nor", "not", "now", "one", "only", "onto", "other", "our", "per", "she",
    "some", "such", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "those", "too", "was", "were", "what", "when", "where", "which", "who", "whose", "why",
    "will", "with", "within", "without", "yet", "you", "your",
];

/// The words of a description that can tell what it asks for.
fn telling(description: &str) -> impl Iterator<Item = String> {
    words(description).filter(|word| word.len() >= TELLING && !STOP_WORDS.contains(&word.as_str()))
}

/// The phrases that a clause for a tool can begin with, each as its words. A phrase of stop words alone is left out.
fn phrases(tool: &Tool) -> Vec<Vec<String>> {
    let phrases = openings(tool).into_iter();
    let phrases = phrases.map(|phrase| words(&phrase).collect::<Vec<String>>());
    let tells = |word: &String| !STOP_WORDS.contains(&word.as_str());
    phrases.filter(|phrase| phrase.iter().any(tells)).collect()
}

/// Number of places of a text at which one of the phrases begins.
fn places(text: &[String], phrases: &[Vec<String>]) -> usize {
    let begins = |at: &usize| {
        let rest = &text[*at..];
        phrases.iter().any(|phrase| rest.starts_with(phrase))
    };
    (0..text.len()).filter(begins).count()
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Checks that no text says a key that only a tool knows, and that no text says all that it asks for.
pub(super) fn nothing_more(suite: &Suite, task: &TaskRecord) -> Result<(), Rejection> {
    let leak = |detail: String| Err(Rejection::new(Reason::Leak, detail));
    for (number, turn) in task.turns.iter().enumerate() {
        let earlier = &task.turns[..=number];
        for call in &turn.calls {
            for (parameter, value) in &call.arguments {
                let Some(input) = suite.input(&call.tool, parameter) else {
                    continue;
                };
                let is_secret =
                    matches!(input.kind.item(), ValueType::Key(_)) && input.from_user.is_none();
                if is_secret && earlier.iter().any(|turn| says(&turn.query, value)) {
                    return leak(format!(
                        "turn {}: the text says the key {value}",
                        number + 1
                    ));
                }
            }
            if call.requested && suite.is_read_only(&call.tool) {
                let asked: Vec<&Value> = call.arguments.values().collect();
                let mut told = items(&call.result)
                    .iter()
                    .filter_map(Value::as_object)
                    .flat_map(|item| item.values())
                    .filter(|value| value.is_string() || value.is_number())
                    .filter(|value| !asked.contains(value))
                    .peekable();
                if told.peek().is_some() && told.all(|value| says(&turn.query, value)) {
                    return leak(format!(
                        "turn {}: the text says the whole result of {}",
                        number + 1,
                        call.tool
                    ));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{phrases, places, says, telling, words};
    use crate::graph::Tool;

    #[test]
    fn words_of_every_text_do_not_tell_what_is_asked_for() {
        let found: Vec<String> =
            telling("Lend a book with the number that is from a shelf").collect();
        assert_eq!(found, ["lend", "book", "number", "shelf"]);
        let found: Vec<String> = telling("Pay the fee for all who had one").collect();
        assert_eq!(found, ["pay", "fee"]);
    }

    #[test]
    fn a_verb_that_says_the_same_as_that_of_the_description_is_a_request() {
        let tool = Tool {
            server: "Library".into(),
            name: "list_loans".into(),
            description: "List what a member has out.".into(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        let phrases = phrases(&tool);
        for (text, expected) in [
            ("Kindly tell me about what Ada has.", 1),
            ("Show me what Ada has, and give me what Bo has.", 2),
            ("Tell me when you give it back to me.", 0),
        ] {
            let text: Vec<String> = words(text).collect();
            assert_eq!(places(&text, &phrases), expected, "{text:?}");
        }
    }

    #[test]
    fn a_value_is_said_as_words_of_its_own() {
        let text = "Pay 15.5 for Ada Byron's order on 2024-03-01, urgent: yes. It is 5, not -7.";
        for said in [
            json!("ada byron"),
            json!(15.5),
            json!("2024-03-01"),
            json!(true),
            json!(5),
            json!(-7),
            json!(["Ada", "order"]),
        ] {
            assert!(says(text, &said), "{said}");
        }
        for unsaid in [
            json!("da"),
            json!(15),
            json!(1),
            json!(3),
            json!(7),
            json!(false),
            json!(null),
            json!(2024),
            json!(["Ada", "Bob"]),
        ] {
            assert!(!says(text, &unsaid), "{unsaid}");
        }
    }
}
