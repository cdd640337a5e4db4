//! Traces that a call could leave for the next one, and traces that it finds.

use std::cell::RefCell;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::tool;
use schemars::JsonSchema;
use serde::Deserialize;

static SHARED: Mutex<Vec<String>> = Mutex::new(Vec::new());

thread_local! {
    static OWN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Trace {
    /// Something that only this call knows
    secret: String,
    /// Where there may be a directory to write in
    folder: String,
}

/// Says what it finds that a call did not bring with it, then leaves its secret everywhere it can.
#[tool]
pub(crate) fn leave_traces(Trace { secret, folder }: Trace) -> Value {
    let folder = Path::new(&folder);
    let names = fs::read_dir(folder).map(|entries| {
        let name = |entry: std::io::Result<fs::DirEntry>| entry.map(|entry| entry.file_name());
        entries
            .filter_map(|entry| name(entry).ok())
            .collect::<Vec<_>>()
    });
    let shared = SHARED.lock().map(|kept| kept.clone()).unwrap_or_default();
    // Memory that another call used before would show here.
    let fresh: Vec<u8> = Vec::with_capacity(1 << 20);
    let now = || {
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
    };
    let found = json!({
        "shared": shared,
        "own": OWN.with_borrow(Clone::clone),
        "files": names.map_or_else(|error| format!("{:?}", error.kind()), |names| format!("{names:?}")),
        "environment": std::env::vars().map(|(name, _)| name).collect::<Vec<_>>(),
        "arguments": std::env::args().collect::<Vec<_>>(),
        "here": format!("{:?}", std::env::current_dir().ok()),
        "time": now().as_nanos() as u64,
        "chance": RandomState::new().hash_one(0_u8).to_string(),
        "address": fresh.as_ptr() as usize,
    });
    if let Ok(mut kept) = SHARED.lock() {
        kept.push(secret.clone());
    }
    OWN.with_borrow_mut(|kept| kept.push(secret.clone()));
    let _ = fs::write(folder.join(&secret), &secret);
    print!("{secret}");
    // Time passes only for this call.
    let start = Instant::now();
    std::thread::sleep(Duration::from_secs(secret.len() as u64 % 5));
    std::hint::black_box((start, vec![secret; 1_000]));
    found
}
