//! The two protocols: how a turn is asked for, and what its answer must be.
//!
//! Ids go out and ids come back, each with its log-probability. Nothing is tokenised again. An answer is used only if
//! all of it is right: training on a wrong one would be a silent error.

use rlf_policy::SamplingParams;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::config::EngineKind;
use crate::generate::Generated;

/// The largest log-probability that counts as 0. Engines that compute in bf16 round beyond 0.
const LARGEST: f64 = 1e-3;
/// The smallest log-probability that a drawn token may have. vLLM writes -9999 for minus infinity.
const SMALLEST: f64 = -9998.0;

/// A turn to sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn<'a> {
    /// All ids of the sequence so far.
    pub(super) prompt: &'a [u32],
    /// Maximum number of tokens to sample.
    pub(super) max_new_tokens: usize,
    pub(super) params: SamplingParams,
    /// The seed of the draws, if one is sent.
    pub(super) seed: Option<u64>,
    /// The model by the engine's name for it.
    pub(super) model: &'a str,
    /// The adapter by the engine's name for it, if the weights are one.
    pub(super) adapter: Option<&'a str>,
    /// The ids that end a turn.
    pub(super) stop_ids: &'a [u32],
    /// Ids from this number on do not exist.
    pub(super) vocabulary: usize,
}

/// The reason why an answer is not a turn.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnswerError {
    #[error("it is not JSON of the expected form: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("it has no choices")]
    NoChoices,
    #[error("it has no token ids; use a version of the engine that returns them")]
    NoIds,
    #[error("it has no tokens")]
    Empty,
    #[error("it has {ids} token ids and {log_probs} log-probabilities")]
    Lengths { ids: usize, log_probs: usize },
    #[error("its log-probabilities are of other ids than its tokens")]
    OtherIds,
    #[error("it has {tokens} tokens, and {most} were asked for")]
    TooMany { tokens: usize, most: usize },
    #[error("its id {id} is not in the vocabulary of {vocabulary}")]
    Vocabulary { id: u64, vocabulary: usize },
    #[error("the log-probability of its token {position} is {}", shown(*.value))]
    LogProbability { position: usize, value: Option<f64> },
    #[error("it goes on after token {position}, which ends a turn")]
    AfterStop { position: usize },
    #[error(
        "it was cut after {tokens} of {most} tokens; give the engine a context of at least `dialogue.context`"
    )]
    CutShort { tokens: usize, most: usize },
    #[error("it ended with `{0}`")]
    Finish(String),
}

fn shown(value: Option<f64>) -> String {
    value.map_or("missing".to_owned(), |value| value.to_string())
}

/// The path of the service that samples.
pub(super) fn path(kind: EngineKind) -> &'static str {
    match kind {
        EngineKind::Sglang => "/generate",
        EngineKind::Vllm => "/v1/completions",
    }
}

/// The request for a turn. It has every parameter that an engine would otherwise take from the model's
/// generation_config.json.
pub(super) fn body(kind: EngineKind, turn: &Turn<'_>) -> Value {
    let params = turn.params;
    let top_k = match params.top_k {
        0 => -1,
        top_k => i64::try_from(top_k).unwrap_or(i64::MAX),
    };
    let mut sampling = json!({
        "temperature": written(params.temperature),
        "top_p": written(params.top_p),
        "top_k": top_k,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "stop_token_ids": turn.stop_ids,
        "skip_special_tokens": false,
    });
    match kind {
        EngineKind::Sglang => {
            sampling["max_new_tokens"] = turn.max_new_tokens.into();
            sampling["no_stop_trim"] = true.into();
            if let Some(seed) = turn.seed {
                sampling["sampling_seed"] = seed.into();
            }
            let mut body = json!({
                "input_ids": turn.prompt,
                "sampling_params": sampling,
                "return_logprob": true,
                "stream": false,
            });
            if let Some(adapter) = turn.adapter {
                body["lora_path"] = adapter.into();
            }
            body
        }
        EngineKind::Vllm => {
            let mut body = sampling;
            body["model"] = turn.adapter.unwrap_or(turn.model).into();
            body["prompt"] = json!(turn.prompt);
            body["max_tokens"] = turn.max_new_tokens.into();
            body["logprobs"] = json!(0);
            body["return_token_ids"] = true.into();
            body["return_tokens_as_token_ids"] = true.into();
            body["stream"] = false.into();
            if let Some(seed) = turn.seed {
                body["seed"] = seed.into();
            }
            body
        }
    }
}

/// A number without the digits that come from the conversion of an f32.
fn written(number: f32) -> f64 {
    (f64::from(number) * 1e6).round() / 1e6
}

/// Reads the answer to `turn`.
pub(super) fn read(
    kind: EngineKind,
    body: &[u8],
    turn: &Turn<'_>,
) -> Result<Generated, AnswerError> {
    let answer = match kind {
        EngineKind::Sglang => read_sglang(body, turn)?,
        EngineKind::Vllm => read_vllm(body)?,
    };
    answer.checked(turn)
}

/// An answer that has not been checked.
struct Answer {
    ids: Vec<u64>,
    log_probs: Vec<Option<f64>>,
    finish: String,
}

/// The answer of SGLang's `/generate`. Other keys are ignored.
#[derive(Deserialize)]
struct SglangAnswer {
    output_ids: Option<Vec<u64>>,
    meta_info: SglangInfo,
}

#[derive(Deserialize)]
struct SglangInfo {
    finish_reason: SglangFinish,
    /// Log-probability, id, and the token's text or null.
    output_token_logprobs: Vec<(Option<f64>, u64, IgnoredAny)>,
}

#[derive(Deserialize)]
struct SglangFinish {
    #[serde(rename = "type")]
    kind: String,
}

fn read_sglang(body: &[u8], turn: &Turn<'_>) -> Result<Answer, AnswerError> {
    let SglangAnswer {
        output_ids,
        meta_info,
    } = serde_json::from_slice(body)?;
    let tokens = meta_info.output_token_logprobs.into_iter();
    let (log_probs, ids): (Vec<Option<f64>>, Vec<u64>) =
        tokens.map(|(log_prob, id, _)| (log_prob, id)).unzip();
    if let Some(output_ids) = output_ids {
        // The list of ids may lack the id that ended the turn. Its log-probability is there in any case.
        let is_stop = |id: &u64| turn.stop_ids.iter().any(|stop| u64::from(*stop) == *id);
        let spoken = (ids.split_last()).filter(|(last, _)| is_stop(last));
        let spoken = spoken.map(|(_, spoken)| spoken);
        if output_ids != ids && Some(&output_ids[..]) != spoken {
            return Err(if output_ids.len() == ids.len() {
                AnswerError::OtherIds
            } else {
                AnswerError::Lengths {
                    ids: output_ids.len(),
                    log_probs: log_probs.len(),
                }
            });
        }
    }
    Ok(Answer {
        ids,
        log_probs,
        finish: meta_info.finish_reason.kind,
    })
}

/// The answer of vLLM's completions. Other keys are ignored.
#[derive(Deserialize)]
struct VllmAnswer {
    #[serde(default)]
    choices: Vec<VllmChoice>,
}

#[derive(Deserialize)]
struct VllmChoice {
    #[serde(default)]
    token_ids: Option<Vec<u64>>,
    logprobs: VllmLogProbs,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct VllmLogProbs {
    token_logprobs: Vec<Option<f64>>,
    /// `token_id:` and the id. Versions without `token_ids` write the ids here alone.
    #[serde(default)]
    tokens: Vec<String>,
}

fn read_vllm(body: &[u8]) -> Result<Answer, AnswerError> {
    let answer: VllmAnswer = serde_json::from_slice(body)?;
    let choice = answer.choices.into_iter().next();
    let choice = choice.ok_or(AnswerError::NoChoices)?;
    let named = |token: &String| token.strip_prefix("token_id:")?.parse().ok();
    let ids = choice
        .token_ids
        .or_else(|| choice.logprobs.tokens.iter().map(named).collect())
        .ok_or(AnswerError::NoIds)?;
    Ok(Answer {
        ids,
        log_probs: choice.logprobs.token_logprobs,
        finish: choice.finish_reason.unwrap_or_else(|| "null".to_owned()),
    })
}

impl Answer {
    fn checked(self, turn: &Turn<'_>) -> Result<Generated, AnswerError> {
        let (tokens, most) = (self.ids.len(), turn.max_new_tokens);
        if !matches!(self.finish.as_str(), "stop" | "length") {
            return Err(AnswerError::Finish(self.finish));
        }
        if tokens != self.log_probs.len() {
            let (ids, log_probs) = (tokens, self.log_probs.len());
            return Err(AnswerError::Lengths { ids, log_probs });
        }
        if tokens == 0 {
            return Err(AnswerError::Empty);
        }
        if tokens > most {
            return Err(AnswerError::TooMany { tokens, most });
        }
        let mut ids = Vec::with_capacity(tokens);
        for id in self.ids {
            let known = u32::try_from(id).ok();
            let known = known.filter(|id| (*id as usize) < turn.vocabulary);
            let vocabulary = turn.vocabulary;
            ids.push(known.ok_or(AnswerError::Vocabulary { id, vocabulary })?);
        }
        let mut log_probs = Vec::with_capacity(tokens);
        for (position, value) in self.log_probs.into_iter().enumerate() {
            let known = value.filter(|value| (SMALLEST..=LARGEST).contains(value));
            let known = known.ok_or(AnswerError::LogProbability { position, value })?;
            log_probs.push(known.min(0.0) as f32);
        }
        let is_stop = |id: &u32| turn.stop_ids.contains(id);
        let stop = ids.iter().position(is_stop);
        if let Some(position) = stop.filter(|position| position + 1 < tokens) {
            return Err(AnswerError::AfterStop { position });
        }
        if self.finish == "length" && stop.is_none() && tokens < most {
            return Err(AnswerError::CutShort { tokens, most });
        }
        Ok(Generated { ids, log_probs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOP: u32 = 7;

    fn turn(adapter: Option<&'static str>) -> Turn<'static> {
        Turn {
            prompt: &[1, 2, 3],
            max_new_tokens: 4,
            params: SamplingParams {
                temperature: 0.7,
                ..SamplingParams::default()
            },
            seed: Some(11),
            model: "qwen",
            adapter,
            stop_ids: &[STOP],
            vocabulary: 48,
        }
    }

    fn sglang(ids: &[u64], log_probs: &Value, finish: &str) -> Result<Generated, String> {
        let pairs: Vec<Value> = (log_probs.as_array().unwrap().iter().zip(ids))
            .map(|(log_prob, id)| json!([log_prob, id, null]))
            .collect();
        let answer = json!({
            "text": "", "output_ids": ids,
            "meta_info": {
                "id": "a", "finish_reason": {"type": finish, "matched": STOP},
                "output_token_logprobs": pairs,
            },
        });
        let body = answer.to_string();
        read(EngineKind::Sglang, body.as_bytes(), &turn(None)).map_err(|error| error.to_string())
    }

    fn vllm(ids: &[u64], log_probs: &Value, finish: &str) -> Result<Generated, String> {
        let choice = json!({
            "index": 0, "text": "", "token_ids": ids, "finish_reason": finish,
            "logprobs": {"token_logprobs": log_probs, "tokens": ["x"], "top_logprobs": []},
        });
        let body = json!({"object": "text_completion", "choices": [choice]}).to_string();
        read(EngineKind::Vllm, body.as_bytes(), &turn(None)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_ids_and_log_probabilities_of_an_answer_are_those_of_the_engine() {
        for read in [sglang, vllm] {
            let log_probs = json!([-0.5, -0.25, 0.0005]);
            let generated = read(&[5, 6, u64::from(STOP)], &log_probs, "stop").unwrap();
            assert_eq!(generated.ids, [5, 6, STOP]);
            assert_eq!(generated.log_probs, [-0.5, -0.25, 0.0]);
            let full = read(&[5, 6, 8, 9], &json!([-1, -1, -1, -1]), "length").unwrap();
            assert_eq!(full.ids, [5, 6, 8, 9]);
            // An engine that leaves the end of the turn out.
            let open = read(&[5], &json!([-1.0]), "stop").unwrap();
            assert_eq!(open.ids, [5]);
        }
    }

    #[test]
    fn an_answer_that_is_wrong_in_any_way_is_no_turn() {
        for read in [sglang, vllm] {
            for (ids, log_probs, finish, why) in [
                (
                    vec![5_u64, 6],
                    json!([-1.0]),
                    "stop",
                    "2 token ids and 1 log-",
                ),
                (vec![], json!([]), "stop", "no tokens"),
                (
                    vec![1, 2, 3, 4, 5],
                    json!([-1, -1, -1, -1, -1]),
                    "stop",
                    "5 tokens, and 4",
                ),
                (
                    vec![48],
                    json!([-1.0]),
                    "stop",
                    "id 48 is not in the vocabulary of 48",
                ),
                (
                    vec![1 << 40],
                    json!([-1.0]),
                    "stop",
                    "not in the vocabulary",
                ),
                (
                    vec![5, 6],
                    json!([-1.0, null]),
                    "stop",
                    "of its token 1 is missing",
                ),
                (vec![5], json!([0.01]), "stop", "of its token 0 is 0.01"),
                (vec![5], json!([-9999.0]), "stop", "of its token 0 is -9999"),
                (
                    vec![7, 5],
                    json!([-1.0, -1.0]),
                    "stop",
                    "goes on after token 0",
                ),
                (
                    vec![5, 6],
                    json!([-1.0, -1.0]),
                    "length",
                    "cut after 2 of 4 tokens",
                ),
                (
                    vec![5, 6],
                    json!([-1.0, -1.0]),
                    "abort",
                    "ended with `abort`",
                ),
            ] {
                let error = read(&ids, &log_probs, finish).unwrap_err();
                assert!(error.contains(why), "{ids:?} {log_probs}: {error}");
            }
        }
        // Python writes numbers that JSON does not have.
        for kind in [EngineKind::Sglang, EngineKind::Vllm] {
            for body in [
                "{\"meta_info\": NaN}",
                "{\"choices\": [{\"logpr",
                "{}",
                "null",
            ] {
                assert!(read(kind, body.as_bytes(), &turn(None)).is_err(), "{body}");
            }
        }
    }

    #[test]
    fn sglang_may_leave_the_end_of_the_turn_out_of_its_ids() {
        let read = |output_ids: &[u32]| {
            let body = json!({
                "output_ids": output_ids,
                "meta_info": {
                    "finish_reason": {"type": "stop"},
                    "output_token_logprobs": [[-0.5, 5, null], [-0.25, STOP, null]],
                },
            });
            let body = body.to_string();
            self::read(EngineKind::Sglang, body.as_bytes(), &turn(None))
        };
        assert_eq!(read(&[5]).unwrap().ids, [5, STOP]);
        assert_eq!(read(&[5, STOP]).unwrap().ids, [5, STOP]);
        assert!(matches!(read(&[6, STOP]), Err(AnswerError::OtherIds)));
        assert!(matches!(read(&[6]), Err(AnswerError::Lengths { .. })));
    }

    #[test]
    fn vllm_may_name_its_ids_as_texts() {
        let read = |tokens: Value| {
            let logprobs = json!({"token_logprobs": [-0.5], "tokens": tokens});
            let choice = json!({"logprobs": logprobs, "finish_reason": "stop"});
            let body = json!({"choices": [choice]}).to_string();
            self::read(EngineKind::Vllm, body.as_bytes(), &turn(None))
        };
        assert_eq!(read(json!(["token_id:5"])).unwrap().ids, [5]);
        assert!(matches!(read(json!(["five"])), Err(AnswerError::NoIds)));
    }

    #[test]
    fn a_request_leaves_nothing_to_the_defaults_of_the_engine() {
        let sglang = body(EngineKind::Sglang, &turn(Some("adapter")));
        assert_eq!(
            sglang,
            json!({
                "input_ids": [1, 2, 3],
                "sampling_params": {
                    "temperature": 0.7, "top_p": 1.0, "top_k": -1, "min_p": 0.0,
                    "repetition_penalty": 1.0, "stop_token_ids": [7], "skip_special_tokens": false,
                    "max_new_tokens": 4, "no_stop_trim": true, "sampling_seed": 11,
                },
                "return_logprob": true,
                "stream": false,
                "lora_path": "adapter",
            })
        );
        let vllm = body(EngineKind::Vllm, &turn(None));
        assert_eq!(
            vllm,
            json!({
                "temperature": 0.7, "top_p": 1.0, "top_k": -1, "min_p": 0.0,
                "repetition_penalty": 1.0, "stop_token_ids": [7], "skip_special_tokens": false,
                "model": "qwen", "prompt": [1, 2, 3], "max_tokens": 4, "logprobs": 0,
                "return_token_ids": true, "return_tokens_as_token_ids": true, "stream": false,
                "seed": 11,
            })
        );
        let with_adapter = body(EngineKind::Vllm, &turn(Some("adapter")));
        assert_eq!(with_adapter["model"], "adapter");
    }
}
