//! Downloads from a hub on this machine, which answers as the real one does: a redirection for large files, parts of files,
//! and the hash of each.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rlf_policy::{Model, measure::quickstart_shape};
use serde_json::json;
use tempfile::TempDir;

use super::*;

const NAME: &str = "someone/Tiny-Qwen3";
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const WEIGHTS: &str = "model.safetensors";
const TOKEN: &str = "hf_token";

/// The files of the hub, and the paths that it was asked for.
#[derive(Default)]
struct State {
    files: BTreeMap<String, Vec<u8>>,
    asked: Vec<String>,
    trouble: Trouble,
}

#[derive(Default, PartialEq)]
enum Trouble {
    #[default]
    None,
    /// The next answer with weights breaks off in the middle.
    BreaksOff,
    /// Weights are not those whose hash is announced.
    Lies,
    /// Files, unlike the list of them, are shown to nobody.
    Gated,
    /// The hash that is announced for small files leads out of the cache.
    LeadsOut,
}

struct LocalHub {
    state: Arc<Mutex<State>>,
    address: String,
    folder: TempDir,
}

impl LocalHub {
    /// A hub with a model that has random weights, and a folder to keep downloads in.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let saved = folder.path().join("saved");
        let model = Model::init(&quickstart_shape(), 1, &candle_core::Device::Cpu).unwrap();
        model.save(&saved).unwrap();
        let mut files: BTreeMap<String, Vec<u8>> = ["config.json", WEIGHTS]
            .map(|name| (name.to_owned(), fs::read(saved.join(name)).unwrap()))
            .into();
        for other in [
            "tokenizer.json",
            "pytorch_model.bin",
            "onnx/model.json",
            "../out.json",
        ] {
            files.insert(other.to_owned(), b"{}".to_vec());
        }
        let state = Arc::new(Mutex::new(State {
            files,
            ..State::default()
        }));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (shared, root) = (Arc::clone(&state), address.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                _ = answer(&shared, &root, stream);
            }
        });
        Self {
            state,
            address,
            folder,
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client(&self) -> Hub {
        self.client_with(Some(TOKEN))
    }

    fn client_with(&self, token: Option<&str>) -> Hub {
        let cache = Cache::new(self.folder.path().join("hub"));
        Hub::new(&self.address, cache, token.map(str::to_owned), false).unwrap()
    }

    /// The paths that were asked for since the last call.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state().asked)
    }
}

fn hash_of(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// Answers one request.
fn answer(state: &Mutex<State>, root: &str, mut stream: TcpStream) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut range, mut token) = (None, None);
    for line in lines {
        let line = line?.to_ascii_lowercase();
        let Some((name, value)) = line.split_once(": ") else {
            break;
        };
        match name {
            "range" => range = Some(value.trim_start_matches("bytes=").to_owned()),
            "authorization" => token = Some(value.to_owned()),
            _ => {}
        }
    }
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    state.asked.push(path.clone());
    let mut reply = |status: &str, headers: &str, body: &[u8], sent: usize| {
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n"
        )?;
        stream.write_all(&body[..sent])
    };
    let from_store = path.strip_prefix("/store/");
    if from_store.is_none() && token.as_deref() != Some("bearer hf_token") {
        return reply("401 Unauthorized", "", b"", 0);
    }
    if path == format!("/api/models/{NAME}/revision/main") {
        let names = state.files.keys().map(|name| json!({"rfilename": name}));
        let siblings: Vec<_> = names.collect();
        let body = json!({"sha": COMMIT, "siblings": siblings}).to_string();
        return reply("200 OK", "", body.as_bytes(), body.len());
    }
    let resolved = path.strip_prefix(&format!("/{NAME}/resolve/{COMMIT}/"));
    let file = from_store.or(resolved).unwrap_or_default();
    let Some(content) = state.files.get(file).cloned() else {
        return reply("404 Not Found", "", b"", 0);
    };
    let hash = hash_of(&content);
    if state.trouble == Trouble::Gated {
        return reply("403 Forbidden", "", b"", 0);
    }
    if file == WEIGHTS && from_store.is_none() {
        let headers = format!(
            "Location: {root}/store/{file}\r\nX-Linked-Etag: \"{hash}\"\r\nX-Repo-Commit: {COMMIT}\r\n"
        );
        return reply("302 Found", &headers, b"", 0);
    }
    let range = range.unwrap_or_default();
    let (first, last) = range.split_once('-').unwrap_or_default();
    let first: usize = first.parse().unwrap_or(0);
    let last = last.parse().unwrap_or(content.len() - 1);
    let mut part = content[first..=last].to_vec();
    if state.trouble == Trouble::Lies && file == WEIGHTS {
        part.fill(7);
    }
    let breaks_off = state.trouble == Trouble::BreaksOff && part.len() > 1 && file == WEIGHTS;
    let sent = if breaks_off {
        state.trouble = Trouble::None;
        part.len() / 2
    } else {
        part.len()
    };
    // git's hash of a small file has 40 digits.
    let headers = format!(
        "ETag: \"{}\"\r\nX-Repo-Commit: {COMMIT}\r\nContent-Range: bytes {first}-{last}/{}\r\n",
        if state.trouble == Trouble::LeadsOut {
            "../../out"
        } else {
            &hash[..40]
        },
        content.len()
    );
    reply("206 Partial Content", &headers, &part, sent)
}

#[test]
fn a_checkpoint_is_downloaded_once_and_loads() {
    let hub = LocalHub::new();
    let folder = hub.client().checkpoint(NAME, "main").unwrap();
    Model::load(&folder, &candle_core::Device::Cpu).unwrap();
    let names = fs::read_dir(&folder).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["config.json", WEIGHTS, "tokenizer.json"]);
    assert!(!hub.asked().iter().any(|path| path.contains("pytorch")));
    assert_eq!(hub.client().checkpoint(NAME, "main").unwrap(), folder);
    assert_eq!(hub.asked().len(), 1, "the list of files alone");
}

#[test]
fn a_download_that_breaks_off_goes_on() {
    let hub = LocalHub::new();
    hub.state().trouble = Trouble::BreaksOff;
    let folder = hub.client().checkpoint(NAME, "main").unwrap();
    assert!(hub.state().trouble == Trouble::None);
    let content = fs::read(folder.join(WEIGHTS)).unwrap();
    assert!(content == hub.state().files[WEIGHTS]);
}

#[test]
fn weights_that_are_not_the_announced_ones_are_removed() {
    let hub = LocalHub::new();
    hub.state().trouble = Trouble::Lies;
    let error = hub.client().checkpoint(NAME, "main").unwrap_err();
    assert!(matches!(error, HubError::Damaged(_)), "{error}");
    assert!(error.to_string().contains(WEIGHTS), "{error}");
    hub.state().trouble = Trouble::None;
    let folder = hub.client().checkpoint(NAME, "main").unwrap();
    Model::load(&folder, &candle_core::Device::Cpu).unwrap();
    // A check that was broken off is made again.
    fs::write(folder.join(WEIGHTS), b"other").unwrap();
    let error = hub.client().checkpoint(NAME, "main").unwrap_err();
    assert!(matches!(error, HubError::Damaged(_)), "{error}");
    assert_eq!(hub.client().checkpoint(NAME, "main").unwrap(), folder);
}

#[test]
fn a_hash_that_leads_out_of_the_cache_is_refused() {
    let hub = LocalHub::new();
    hub.state().trouble = Trouble::LeadsOut;
    let error = hub.client().checkpoint(NAME, "main").unwrap_err();
    assert!(matches!(error, HubError::Damaged(_)), "{error}");
    assert!(!hub.folder.path().join("out").exists());
}

#[test]
fn a_model_that_cannot_be_trained_is_refused_before_its_weights_are_asked_for() {
    let hub = LocalHub::new();
    let other = br#"{"model_type": "bert", "hidden_size": 8}"#.to_vec();
    hub.state().files.insert("config.json".to_owned(), other);
    let error = hub.client().checkpoint(NAME, "main").unwrap_err();
    assert!(matches!(error, HubError::Policy(_)), "{error}");
    assert!(!hub.asked().iter().any(|path| path.contains(WEIGHTS)));
    hub.state().files.remove(WEIGHTS);
    let error = hub.client().checkpoint(NAME, "main").unwrap_err();
    assert!(matches!(error, HubError::NoCheckpoint(_)), "{error}");
}

#[test]
fn a_model_that_is_not_shown_is_named_with_what_to_do() {
    let hub = LocalHub::new();
    let errors = [
        hub.client().checkpoint("someone/else", "main"),
        hub.client().checkpoint(NAME, "v2"),
        hub.client_with(None).checkpoint(NAME, "main"),
    ];
    hub.state().trouble = Trouble::Gated;
    let gated = hub.client().checkpoint(NAME, "main");
    for error in errors.into_iter().chain([gated]) {
        let error = error.unwrap_err();
        assert!(matches!(error, HubError::NotFound { .. }), "{error}");
        assert!(error.to_string().contains("HF_TOKEN"), "{error}");
    }
}

#[test]
fn names_that_lead_elsewhere_are_refused_without_a_request() {
    let hub = LocalHub::new();
    for name in ["gpt2", "a/b/c", "../b", "a/..", "a/b?x", "/b", "a/", ""] {
        let error = hub.client().checkpoint(name, "main").unwrap_err();
        assert!(matches!(error, HubError::Name { .. }), "{name}: {error}");
    }
    for revision in ["../main", "", "a b"] {
        let error = hub.client().checkpoint(NAME, revision).unwrap_err();
        assert!(
            matches!(error, HubError::Name { .. }),
            "{revision}: {error}"
        );
    }
    assert!(hub.asked().is_empty());
}

#[test]
fn a_hub_that_does_not_answer_is_named() {
    let hub = LocalHub::new();
    let cache = Cache::new(hub.folder.path().join("hub"));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let hub = Hub::new(&address, cache, None, false).unwrap();
    let error = hub.checkpoint(NAME, "main").unwrap_err();
    assert!(error.to_string().contains(&address), "{error}");
}
