//! Sentences: how a user asks, in which order, and what stands around it.

use rlf_random::Key;

use super::clause::{Said, clause};
use super::mention;
use super::phrase::Phrase;
use crate::sampling::Draws;
use crate::tasks::make::Maker;
use crate::tasks::request::Request;

/// Ways to ask for anything; the clause follows. The second text of each is the mark at the end.
const ASKING: [(&str, &str); 20] = [
    ("", "."),
    ("", "."),
    ("please ", "."),
    ("please ", "."),
    ("could you ", "?"),
    ("can you ", "?"),
    ("would you ", "?"),
    ("could you please ", "?"),
    ("would you be so kind as to ", "?"),
    ("will you please ", "?"),
    ("I need you to ", "."),
    ("I would like you to ", "."),
    ("I want you to ", "."),
    ("kindly ", "."),
    ("go ahead and ", "."),
    ("do me a favour and ", "."),
    ("I was hoping you could ", "."),
    ("may I ask you to ", "?"),
    ("if you can, ", "."),
    ("it would help me if you could ", "."),
];

/// Further ways to ask for something to be done.
const STATING: [(&str, &str); 14] = [
    ("we need to ", "."),
    ("we have to ", "."),
    ("you should ", "."),
    ("make sure to ", "."),
    ("it is time to ", "."),
    ("I have been asked to ", "."),
    ("is it possible to ", "?"),
    ("let us ", "."),
    ("what is left is to ", "."),
    ("what I need is to ", "."),
    ("the plan is to ", "."),
    ("it would be good to ", "."),
    ("I am asked to ", "."),
    ("please help me to ", "."),
];

/// Words that may stand before the first request of a task.
const GREETINGS: [&str; 20] = [
    "Hello.",
    "Hi there!",
    "Good morning.",
    "Good afternoon.",
    "Good evening.",
    "Excuse me.",
    "I have a quick request.",
    "I am in a hurry.",
    "I am calling from the road.",
    "Somebody is waiting here.",
    "This came in by telephone.",
    "I have a small job for you.",
    "This is for the files.",
    "Before I forget it:",
    "Here is what has to be done.",
    "Sorry to bother you.",
    "This should not take long.",
    "I hope you can help me.",
    "There is something to settle.",
    "From my list for today:",
];

/// Words that may stand before the first request of a later turn.
const RETURNS: [&str; 12] = [
    "Good.",
    "Thanks.",
    "Fine, next point.",
    "One more thing.",
    "That was quick.",
    "All right.",
    "Now to something else.",
    "There is something else.",
    "Very good.",
    "Now for the next thing.",
    "Great, thank you.",
    "Something else came up.",
];

/// Words that may stand at the end.
const CLOSINGS: [&str; 16] = [
    "Thanks.",
    "Thank you.",
    "Thanks in advance.",
    "Many thanks.",
    "That is all.",
    "That is all for now.",
    "No hurry.",
    "It is rather urgent.",
    "Tell me when it is done.",
    "I rely on you.",
    "Let me know if that works.",
    "I will wait.",
    "Best wishes.",
    "You are a great help.",
    "See you later.",
    "Cheers.",
];

/// Words before a further request.
const CONNECTORS: [&str; 12] = [
    "then ",
    "after that, ",
    "next, ",
    "also, ",
    "and ",
    "once that is done, ",
    "in addition, ",
    "as a further step, ",
    "afterwards, ",
    "when you have that, ",
    "on top of that, ",
    "",
];

/// Words that join two requests in one sentence.
const JOINTS: [&str; 6] = [
    " and ",
    ", and then ",
    " and also ",
    ", then ",
    " and after that ",
    "; and ",
];

/// Probability of a greeting, and of a closing.
const AROUND: f64 = 0.4;

/// Writes the words of one task.
pub(super) struct Words<'a> {
    maker: &'a Maker<'a>,
    draws: Draws,
}

impl<'a> Words<'a> {
    pub(super) fn new(maker: &'a Maker<'a>, key: Key) -> Self {
        Self {
            maker,
            draws: Draws::new(key),
        }
    }

    /// Writes the words of a turn.
    pub(super) fn turn(&mut self, turn: usize, requests: &[Request]) -> Phrase {
        let mut text = Phrase::default();
        let terse = self.maker.options.terse;
        if !terse && self.draws.chance(AROUND) {
            let greetings: &[&str] = if turn == 0 { &GREETINGS } else { &RETURNS };
            let greeting = greetings[self.draws.index(greetings.len())];
            text = text.and(greeting).and(" ");
        }
        for (place, group) in grouped(requests).iter().enumerate() {
            if place > 0 {
                text = text.and(" ");
            }
            text = text.then(&self.sentence(place, group));
        }
        if !terse && self.draws.chance(AROUND) {
            text = text
                .and(" ")
                .and(CLOSINGS[self.draws.index(CLOSINGS.len())]);
        }
        text
    }

    /// Writes a sentence that asks for one request, or for several that are joined.
    fn sentence(&mut self, place: usize, group: &[Request]) -> Phrase {
        let suite = self.maker.suite;
        let asks = group.iter().any(|one| suite.is_read_only(&one.tool));
        let ways = ASKING.len() + if asks { 0 } else { STATING.len() };
        let way = self.draws.index(ways);
        let (mut opener, mut mark) = if way < ASKING.len() {
            ASKING[way]
        } else {
            STATING[way - ASKING.len()]
        };
        let mut sentence = Phrase::default();
        if place > 0 {
            let connector = CONNECTORS[self.draws.index(CONNECTORS.len())];
            sentence = sentence.and(connector);
            // Most people ask politely once.
            if self.draws.chance(0.6) {
                (opener, mark) = ("", ".");
            }
        }
        sentence = sentence.and(opener);
        for (number, request) in group.iter().enumerate() {
            if number > 0 {
                sentence = sentence.and(JOINTS[self.draws.index(JOINTS.len())]);
            }
            sentence = sentence.then(&self.request(request));
        }
        let sentence = sentence.capitalised();
        if sentence.is_ended() {
            sentence
        } else {
            sentence.and(mark)
        }
    }

    fn request(&mut self, request: &Request) -> Phrase {
        let Some(tool) = self.maker.suite.tool(&request.tool) else {
            return Phrase::words(request.tool.clone());
        };
        let said: Vec<Said> = tool
            .inputs
            .iter()
            .filter_map(|input| {
                let mention = request.arguments.get(&input.name)?;
                Some((
                    input.name.clone(),
                    mention::phrase(mention, &mut self.draws),
                ))
            })
            .collect();
        clause(tool, &said, &mut self.draws)
    }
}

/// Requests in groups that are joined in one sentence.
fn grouped(requests: &[Request]) -> Vec<&[Request]> {
    let mut groups = Vec::new();
    let mut start = 0;
    for place in 1..=requests.len() {
        if requests.get(place).is_none_or(|request| !request.joined) {
            groups.push(&requests[start..place]);
            start = place;
        }
    }
    groups
}
