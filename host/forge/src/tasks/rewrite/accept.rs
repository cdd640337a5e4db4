//! Puts a text of a model into a task, and checks it as the grammar's text was checked.

use super::faults::{Fault, faults};
use crate::graph::ToolGraph;
use crate::tasks::check::check;
use crate::tasks::make::Maker;
use crate::tasks::pipeline::finished;
use crate::tasks::record::{Author, TaskRecord};
use crate::tasks::request::Mention;
use crate::tasks::text::spoken;

/// The task with the words of a model, or everything that is wrong with them.
pub(super) fn accept(
    maker: &Maker<'_>,
    graph: &ToolGraph,
    task: &TaskRecord,
    texts: &[String],
) -> Result<TaskRecord, Vec<Fault>> {
    let (wanted, got) = (task.turns.len(), texts.len());
    if wanted != got {
        let what = format!("there are {wanted} turns, and the answer has {got}");
        return Err(vec![Fault::form(what)]);
    }
    let mut new = task.clone();
    for (turn, text) in new.turns.iter_mut().zip(texts) {
        turn.query = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let requests = turn.requests.iter();
        let values = requests.flat_map(|request| request.arguments.values());
        let values = values.flat_map(Mention::values).map(spoken);
        turn.template = template(&turn.query, values.collect());
    }
    let mut found = faults(task, &new);
    // What the checks of all tasks find beside these faults is told at once.
    match check(maker.suite, graph, &new, maker.options) {
        Err(rejection) => {
            let fault = Fault::from(rejection);
            if !found.iter().any(|one| one.kind == fault.kind) {
                found.push(fault);
            }
            Err(found)
        }
        Ok(_) if !found.is_empty() => Err(found),
        Ok(checked) => {
            let mut new = finished(new, checked);
            new.author = Author::Model;
            Ok(new)
        }
    }
}

/// A text with `<>` in place of every value, longer values first.
fn template(text: &str, mut values: Vec<String>) -> String {
    values.retain(|value| !value.is_empty());
    values.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
    values.dedup();
    let mut template = text.to_owned();
    for value in values {
        template = without(&template, &value);
    }
    template
}

/// A text with `<>` in place of a value, where it is a word or words of its own, in upper or lower case.
fn without(text: &str, value: &str) -> String {
    let is_same = |one: &str| one.to_lowercase() == value.to_lowercase();
    let inside = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let count = value.chars().count();
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        let end = rest
            .char_indices()
            .nth(count)
            .map_or(rest.len(), |(at, _)| at);
        let (candidate, after) = rest.split_at(end);
        if !inside(before) && is_same(candidate) && !inside(after.chars().next()) {
            result.push_str("<>");
            before = candidate.chars().next_back();
            rest = after;
        } else {
            result.push(first);
            before = Some(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::template;

    #[test]
    fn a_template_has_no_value_and_keeps_the_words() {
        let values = ["Ada", "Ada Byron", "5", "14"].map(str::to_owned).to_vec();
        assert_eq!(
            template(
                "Lend 5 books to ada byron (Ada!) for 14 days, not 145: Adana.",
                values
            ),
            "Lend <> books to <> (<>!) for <> days, not 145: Adana."
        );
        assert_eq!(template("Größe 5", vec!["größe".to_owned()]), "<> 5");
    }
}
