//! An external engine on the loopback interface, which answers as the test says: well, wrongly or not at all.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rlf_policy::{DrawKey, Purpose, Sampler, SamplingParams};
use rlf_rollout::external_engine::{
    EngineKind, ExternalEngine, ExternalEngineConfig, ExternalGenerator, SavedWeights,
    SequenceLimits,
};
use rlf_rollout::generate::{GenerateError, GenerateRequest, Generated, Generator, SequenceId};
use serde_json::{Value, json};

const STOP: u32 = 7;

/// Words that Python writes for numbers that JSON does not have.
const NAN: &str = r#"{"meta_info": {"output_token_logprobs": [[NaN, 5, null]]}, "choices": [NaN]}"#;

/// The reaction to a request.
enum Reply {
    /// A status with this body.
    Status(u16, String),
    /// The head of an answer, and half of its body.
    Half(String),
    /// The connection stays open without an answer until the client leaves.
    Stalls,
}

fn ok(body: &Value) -> Reply {
    Reply::Status(200, body.to_string())
}

/// Path and body of the requests so far.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// Starts an engine. `reply` gets the path, the body, and the number of requests to this path before. Returns its URL.
fn start(reply: impl Fn(&str, &Value, usize) -> Reply + Send + Sync + 'static) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Asked::default();
    let (kept, reply) = (asked.clone(), Arc::new(reply));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (kept, reply) = (kept.clone(), reply.clone());
            thread::spawn(move || stream.and_then(|stream| answer(&stream, &kept, &*reply)));
        }
    });
    (url, asked)
}

fn answer(
    mut stream: &TcpStream,
    asked: &Mutex<Vec<(String, Value)>>,
    reply: &dyn Fn(&str, &Value, usize) -> Reply,
) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body: Value = serde_json::from_slice(&body)?;
    let before = {
        let mut asked = asked.lock().unwrap();
        let before = asked.iter().filter(|(other, _)| *other == path).count();
        asked.push((path.clone(), body.clone()));
        before
    };
    let (status, body, sent) = match reply(&path, &body, before) {
        Reply::Status(status, body) => (status, body.clone(), body),
        Reply::Half(body) => (200, body.clone(), body[..body.len() / 2].to_owned()),
        Reply::Stalls => return reader.read_to_end(&mut Vec::new()).map(drop),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{sent}"
    )
}

/// SGLang's answer with these ids and log-probabilities.
fn sglang(ids: &[u32], log_probs: &Value) -> Value {
    let log_probs = log_probs.as_array().unwrap();
    let pairs: Vec<Value> = (log_probs.iter().zip(ids))
        .map(|(log_prob, id)| json!([log_prob, id, null]))
        .collect();
    let info = json!({"finish_reason": {"type": "stop"}, "output_token_logprobs": pairs});
    json!({"text": "", "output_ids": ids, "meta_info": info})
}

/// vLLM's answer with these ids and log-probabilities.
fn vllm(ids: &[u32], log_probs: &Value) -> Value {
    let logprobs = json!({"token_logprobs": log_probs, "tokens": []});
    let choice = json!({"token_ids": ids, "logprobs": logprobs, "finish_reason": "stop"});
    json!({"choices": [choice]})
}

/// The answer of either kind with these ids and log-probabilities.
fn turn_of(kind: EngineKind, ids: &[u32], log_probs: &Value) -> Value {
    match kind {
        EngineKind::Sglang => sglang(ids, log_probs),
        EngineKind::Vllm => vllm(ids, log_probs),
    }
}

fn is_turn(path: &str) -> bool {
    matches!(path, "/generate" | "/v1/completions")
}

fn config(kind: EngineKind, url: &str) -> ExternalEngineConfig {
    ExternalEngineConfig {
        kind,
        url: url.to_owned(),
        model: "policy".to_owned(),
        backoff: Duration::ZERO,
        retries: 2,
        ..ExternalEngineConfig::default()
    }
}

/// A generator with these weights, which nobody saves.
fn generator(config: ExternalEngineConfig, weights: SavedWeights) -> ExternalGenerator {
    let lora = matches!(weights, SavedWeights::Adapter(_));
    let engine = ExternalEngine::open(config, lora).unwrap();
    with_engine(&Arc::new(engine), weights)
}

fn with_engine(engine: &Arc<ExternalEngine>, weights: SavedWeights) -> ExternalGenerator {
    let limits = SequenceLimits {
        stop_ids: vec![STOP],
        context: 64,
        vocabulary: 48,
    };
    ExternalGenerator::new(
        engine.clone(),
        limits,
        Arc::new(move || Ok(weights.clone())),
    )
}

fn model() -> SavedWeights {
    SavedWeights::Model(PathBuf::from("/weights"))
}

fn request(append: &[u32], position: u64) -> GenerateRequest {
    GenerateRequest {
        sequence: SequenceId(1),
        append: append.to_vec(),
        max_new_tokens: 8,
        sampler: Sampler::new(SamplingParams::default(), 11, Purpose::Rollout).unwrap(),
        key: DrawKey {
            step: 1,
            task: 2,
            sample: 3,
            position,
        },
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

/// The result of one turn, if the engine reacts to it like this.
fn one_turn(
    kind: EngineKind,
    reply: impl Fn(usize) -> Reply + Send + Sync + 'static,
) -> Result<Generated, GenerateError> {
    let (url, _) = start(move |path, _, before| {
        if is_turn(path) {
            reply(before)
        } else {
            ok(&json!({"success": true}))
        }
    });
    let mut config = config(kind, &url);
    config.timeout = Duration::from_secs(2);
    let generator = generator(config, model());
    block_on(generator.generate(request(&[1, 2, 3], 0)))
}

const KINDS: [EngineKind; 2] = [EngineKind::Sglang, EngineKind::Vllm];

#[test]
fn the_engine_gets_the_weights_once_and_then_the_ids_of_the_whole_sequence() {
    for kind in KINDS {
        let (url, asked) = start(move |path, _, before| match path {
            _ if !is_turn(path) => ok(&json!({"success": true})),
            _ if before == 0 => ok(&turn_of(kind, &[5, STOP], &json!([-0.5, -0.25]))),
            _ => ok(&turn_of(kind, &[6], &json!([-1.0]))),
        });
        let generator = generator(config(kind, &url), model());
        let (first, second) = block_on(async {
            let first = generator.generate(request(&[1, 2, 3], 0)).await.unwrap();
            let second = generator.generate(request(&[9], 2)).await.unwrap();
            let times = generator.take_times().await;
            assert_eq!((times.sampled, times.fed), (3, 4));
            (first, second)
        });
        assert_eq!(
            (first.ids, first.log_probs),
            (vec![5, STOP], vec![-0.5, -0.25])
        );
        assert_eq!((second.ids, second.log_probs), (vec![6], vec![-1.0]));
        let asked = asked.lock().unwrap();
        let paths: Vec<&str> = asked.iter().map(|(path, _)| path.as_str()).collect();
        let (prompt, bodies) = match kind {
            EngineKind::Sglang => {
                assert_eq!(
                    paths,
                    ["/update_weights_from_disk", "/generate", "/generate"]
                );
                assert_eq!(asked[0].1, json!({"model_path": "/weights"}));
                ("input_ids", &asked[1..])
            }
            EngineKind::Vllm => {
                let reload = ["/collective_rpc", "/reset_prefix_cache"];
                assert_eq!(paths[..2], reload);
                assert_eq!(paths[2..], ["/v1/completions", "/v1/completions"]);
                let kwargs = &asked[0].1["kwargs"];
                assert_eq!(*kwargs, json!({"weights_path": "/weights"}));
                assert_eq!(asked[2].1["model"], "policy");
                ("prompt", &asked[2..])
            }
        };
        assert_eq!(bodies[0].1[prompt], json!([1, 2, 3]));
        assert_eq!(bodies[1].1[prompt], json!([1, 2, 3, 5, STOP, 9]));
        let seed = |body: &Value| match kind {
            EngineKind::Sglang => body["sampling_params"]["sampling_seed"].as_u64().unwrap(),
            EngineKind::Vllm => body["seed"].as_u64().unwrap(),
        };
        assert_ne!(seed(&bodies[0].1), seed(&bodies[1].1));
    }
}

#[test]
fn an_engine_that_failed_is_asked_again_with_the_same_request() {
    for kind in KINDS {
        let good = move || turn_of(kind, &[5, STOP], &json!([-0.5, -0.25]));
        let failed = one_turn(kind, move |before| match before {
            0 => Reply::Status(500, String::new()),
            1 => Reply::Half(good().to_string()),
            _ => ok(&good()),
        });
        assert_eq!(failed.unwrap().ids, [5, STOP]);
        let busy = one_turn(kind, move |before| match before {
            0 | 1 => Reply::Status(429, String::new()),
            _ => ok(&good()),
        });
        assert_eq!(busy.unwrap().ids, [5, STOP]);
    }
}

#[test]
fn a_turn_that_cannot_be_had_is_an_infrastructure_failure() {
    for kind in KINDS {
        let wrong = [
            (vec![5, 6], json!([-1.0]), "1 log-probabilities"),
            (
                vec![5],
                json!([null]),
                "log-probability of its token 0 is missing",
            ),
            (vec![48], json!([-1.0]), "not in the vocabulary"),
        ];
        for (ids, log_probs, why) in wrong {
            let lost = one_turn(kind, move |_| ok(&turn_of(kind, &ids, &log_probs)));
            let lost = lost.unwrap_err();
            assert!(
                matches!(&lost, GenerateError::Unavailable(text) if text.contains(why)),
                "{lost}"
            );
        }
        for reply in [
            (|| Reply::Status(200, NAN.to_owned())) as fn() -> Reply,
            || Reply::Status(503, String::new()),
            || Reply::Status(400, "the prompt is too long".to_owned()),
            || Reply::Half("{\"a\": 1}".to_owned()),
            || Reply::Stalls,
        ] {
            let lost = one_turn(kind, move |_| reply()).unwrap_err();
            assert!(matches!(lost, GenerateError::Unavailable(_)), "{lost}");
        }
    }
}

#[test]
fn an_engine_that_refuses_every_turn_or_the_weights_ends_the_rollout() {
    for kind in KINDS {
        let refused = one_turn(kind, |_| Reply::Status(404, "no such model".to_owned()));
        let refused = refused.unwrap_err();
        assert!(matches!(&refused, GenerateError::Stopped(_)), "{refused}");

        for reply in [
            (|| ok(&json!({"success": false, "message": "no such folder"}))) as fn() -> Reply,
            || Reply::Status(400, "no such folder".to_owned()),
        ] {
            let (url, asked) = start(move |_, _, _| reply());
            let generator = generator(config(kind, &url), model());
            let ends = block_on(async {
                let first = generator.generate(request(&[1], 0)).await;
                (first, generator.generate(request(&[1], 0)).await)
            });
            for end in [ends.0, ends.1] {
                let end = end.unwrap_err();
                let says =
                    matches!(&end, GenerateError::Stopped(why) if why.contains("no such folder"));
                assert!(says, "{end}");
            }
            assert_eq!(
                asked.lock().unwrap().len(),
                1,
                "the weights are refused once"
            );
        }
    }
}

#[test]
fn each_adapter_is_loaded_under_a_name_of_its_own_and_the_one_before_is_unloaded() {
    for kind in KINDS {
        let (url, asked) = start(move |path, _, _| match path {
            _ if is_turn(path) => ok(&turn_of(kind, &[5], &json!([-1.0]))),
            // As if the engine had been started again.
            _ if path.ends_with("/unload_lora_adapter") => Reply::Status(404, String::new()),
            _ => Reply::Status(200, "Success: it was added".to_owned()),
        });
        let engine = ExternalEngine::open(config(kind, &url), true).unwrap();
        let engine = Arc::new(engine);
        for _ in 0..2 {
            let adapter = SavedWeights::Adapter(PathBuf::from("/adapter"));
            let generator = with_engine(&engine, adapter);
            block_on(generator.generate(request(&[1], 0))).unwrap();
        }
        let asked = asked.lock().unwrap();
        let of = |service: &str, key: &str| -> Vec<Value> {
            let to = asked.iter().filter(|(path, _)| path.ends_with(service));
            to.map(|(_, body)| body[key].clone()).collect()
        };
        let loaded = of("/load_lora_adapter", "lora_name");
        assert_eq!(loaded.len(), 2);
        assert_ne!(loaded[0], loaded[1]);
        assert_eq!(
            of("/load_lora_adapter", "lora_path"),
            ["/adapter", "/adapter"]
        );
        assert_eq!(of("/unload_lora_adapter", "lora_name"), [loaded[0].clone()]);
        let used = match kind {
            EngineKind::Sglang => of("/generate", "lora_path"),
            EngineKind::Vllm => of("/v1/completions", "model"),
        };
        assert_eq!(used, loaded);
    }
}

#[test]
fn an_adapter_that_is_refused_is_loaded_under_another_name_once() {
    // The names that were loaded, those that were unloaded, and the end of a turn.
    let turn = |kind, refused: usize| {
        let (url, asked) = start(move |path, _, before| match path {
            _ if is_turn(path) => ok(&turn_of(kind, &[5], &json!([-1.0]))),
            _ if path.ends_with("/load_lora_adapter") && before < refused => {
                Reply::Status(400, "it is loaded".to_owned())
            }
            _ => Reply::Status(200, "Success".to_owned()),
        });
        let engine = Arc::new(ExternalEngine::open(config(kind, &url), true).unwrap());
        let generator = with_engine(&engine, SavedWeights::Adapter(PathBuf::from("/adapter")));
        let end = block_on(generator.generate(request(&[1], 0)));
        let names = |service: &str| -> Vec<String> {
            let asked = asked.lock().unwrap();
            let to = asked.iter().filter(|(path, _)| path.ends_with(service));
            to.map(|(_, body)| body["lora_name"].as_str().unwrap().to_owned())
                .collect()
        };
        (
            names("/load_lora_adapter"),
            names("/unload_lora_adapter"),
            end,
        )
    };
    for kind in KINDS {
        let (loaded, unloaded, end) = turn(kind, 1);
        assert_eq!(end.unwrap().ids, [5]);
        assert_eq!((loaded.len(), &loaded[..1]), (2, &unloaded[..]));
        assert_ne!(loaded[0], loaded[1]);
        let (loaded, _, end) = turn(kind, 2);
        let end = end.unwrap_err();
        let says = matches!(&end, GenerateError::Stopped(why) if why.contains("it is loaded"));
        assert!(says, "{end}");
        assert_eq!(loaded.len(), 2);
    }
}

#[test]
fn the_operators_command_gets_the_folder_and_its_failure_ends_the_rollout() {
    let (url, asked) = start(|_, _, _| ok(&vllm(&[5], &json!([-1.0]))));
    let turn = |script: &str| {
        let command = ["sh", "-c", script].map(str::to_owned);
        let config = ExternalEngineConfig {
            update_command: command.to_vec(),
            ..config(EngineKind::Vllm, &url)
        };
        block_on(generator(config, model()).generate(request(&[1], 0)))
    };
    assert_eq!(turn("test \"$0\" = /weights").unwrap().ids, [5]);
    let paths: Vec<String> = (asked.lock().unwrap().iter())
        .map(|(path, _)| path.clone())
        .collect();
    assert_eq!(paths, ["/v1/completions"]);
    let failed = turn("exit 3").unwrap_err().to_string();
    assert!(
        failed.contains("update_command: `sh` ended with exit status: 3"),
        "{failed}"
    );
}

#[test]
fn a_sequence_longer_than_the_context_is_not_sent() {
    let (url, asked) = start(|_, _, _| ok(&json!({"success": true})));
    let generator = generator(config(EngineKind::Sglang, &url), model());
    let refused = block_on(generator.generate(request(&[1; 57], 0))).unwrap_err();
    assert!(
        matches!(
            refused,
            GenerateError::TooLong {
                wanted: 65,
                capacity: 64
            }
        ),
        "{refused}"
    );
    assert_eq!(asked.lock().unwrap().len(), 1, "the weights alone");
}
