//! Asks the judge: questions side by side, and again after answers that cannot be used.

use rlf_plugin::model::{self, Answer, Question};
use rlf_plugin::{Error, error_message};

use crate::config::Config;
use crate::prompt::Inquiry;
use crate::reply::{self, Form};

/// Maximum bytes of questions that are asked together. The host limits what one of its functions is given
/// (`hostcall_bytes`).
const TOGETHER: usize = 4 << 20;

/// Number of characters of an unusable answer in an error.
const EXCERPT: usize = 200;

/// The reason that the judge is told if the host found that its answer does not fit the schema. The host's own words may quote
/// the answer.
const MISFIT: &str = "it does not have the form of the system message";

/// The judge's reply to one inquiry, and what it took.
#[derive(Debug, Clone)]
pub(crate) struct Asked<R> {
    /// The reply, or why there is none.
    pub(crate) reply: Result<R, String>,
    /// Questions asked, retries included.
    pub(crate) questions: u32,
    /// Tokens of questions and answers.
    pub(crate) tokens: u64,
}

/// Asks all inquiries. One result for each, in order.
pub(crate) fn all<F: Form>(config: &Config, inquiries: &[Inquiry<F>]) -> Vec<Asked<F::Reply>> {
    let mut states: Vec<State<F::Reply>> = inquiries.iter().map(|_| State::new()).collect();
    for _ in 0..=config.retries {
        let open = states.iter_mut().zip(inquiries);
        let (mut open, questions): (Vec<_>, Vec<_>) = open
            .filter(|(state, _)| state.settled.is_none())
            .map(|(state, inquiry)| {
                let complaint = state
                    .unusable
                    .as_ref()
                    .map(|unusable| unusable.why.as_str());
                let question = inquiry.question(config, complaint);
                ((state, inquiry), question)
            })
            .unzip();
        let answers = ask_in_batches(&questions);
        for ((state, inquiry), answer) in open.iter_mut().zip(answers) {
            state.hear(config, inquiry, answer);
        }
    }
    states
        .into_iter()
        .map(|state| state.finish(config))
        .collect()
}

/// Asks as many questions together as fit. One result for each, in order.
fn ask_in_batches(questions: &[Question]) -> Vec<Result<Answer, Error>> {
    let size = |question: &Question| -> usize {
        question
            .messages
            .iter()
            .map(|message| message.text.len())
            .sum()
    };
    let mut answers = Vec::with_capacity(questions.len());
    let mut rest = questions;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |question: &&Question| {
            bytes += size(question);
            bytes <= TOGETHER
        };
        let together = rest.iter().take_while(fits).count().max(1);
        let (now, later) = rest.split_at(together);
        let mut heard = model::ask(now);
        heard.resize_with(now.len(), || {
            Err(Error::Internal("the host gave no answer".to_owned()))
        });
        answers.append(&mut heard);
        rest = later;
    }
    answers
}

struct State<R> {
    settled: Option<Result<R, String>>,
    unusable: Option<Unusable>,
    questions: u32,
    tokens: u64,
}

struct Unusable {
    /// The reason, without words of the answer.
    why: String,
    /// The beginning of the answer or the words of the host, for the operator.
    detail: String,
}

impl<R> State<R> {
    fn new() -> Self {
        Self {
            settled: None,
            unusable: None,
            questions: 0,
            tokens: 0,
        }
    }

    fn hear<F: Form<Reply = R>>(
        &mut self,
        config: &Config,
        inquiry: &Inquiry<F>,
        answer: Result<Answer, Error>,
    ) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(Error::Unavailable(detail)) => {
                self.questions += 1;
                let why = MISFIT.to_owned();
                self.unusable = Some(Unusable { why, detail });
                return;
            }
            Err(error) => {
                let why = error_message(&error);
                self.settled = Some(Err(format!("the judge could not be asked: {why}")));
                return;
            }
        };
        self.questions += 1;
        let tokens = answer
            .prompt_tokens
            .saturating_add(answer.completion_tokens);
        self.tokens = self.tokens.saturating_add(tokens);
        let read = if answer.cut_short {
            Err(format!(
                "it was cut short by the limit of tokens (`max_tokens` = {})",
                config.max_tokens
            ))
        } else {
            reply::read(&inquiry.form, &inquiry.nonce, &answer.text)
        };
        match read {
            Ok(reply) => self.settled = Some(Ok(reply)),
            Err(why) => {
                let excerpt: String = answer.text.chars().take(EXCERPT).collect();
                let detail = format!("the last answer begins {excerpt:?}");
                self.unusable = Some(Unusable { why, detail });
            }
        }
    }

    fn finish(self, config: &Config) -> Asked<R> {
        let reply = self.settled.unwrap_or_else(|| {
            let last = self
                .unusable
                .map_or(String::new(), |Unusable { why, detail }| {
                    format!(": {why} ({detail})")
                });
            let attempts = config.retries + 1;
            Err(format!(
                "the judge gave no usable answer (attempts: {attempts}){last}"
            ))
        });
        Asked {
            reply,
            questions: self.questions,
            tokens: self.tokens,
        }
    }
}
