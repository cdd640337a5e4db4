//! A component is prepared in its own process: its resources are limited, a failure is one line, and it has nothing
//! of the host's environment.

use std::fs;

use rlf_tests::{Ended, Host};

/// Loads the calculator under these settings, with nothing in the cache.
fn inspect(settings: &str) -> Ended {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("operator.toml");
    let cache = folder.path().join("cache");
    let text = format!(
        "[sandbox]\ncache = {:?}\n{settings}\n",
        cache.display().to_string()
    );
    fs::write(&config, text).expect("can be written");
    host.plugin([
        "inspect",
        "calculator",
        "--json",
        "--config",
        config.to_str().expect("a plain name"),
    ])
}

#[test]
fn a_component_is_compiled_by_a_child_and_then_called() {
    let report = inspect("").succeeded().json();
    assert_eq!(report["preparation"]["from_cache"], false, "{report}");
    assert_eq!(report["init"]["mode"], "snapshot", "{report}");
    assert_eq!(report["tools"][0]["name"], "calculate");
}

#[test]
fn one_that_takes_too_much_memory_is_refused_by_the_limits_name() {
    inspect("prepare_memory_bytes = 50_000_000").refused_with(&[
        "calculator",
        "bytes of memory (the sandbox's prepare_memory_bytes and 16 times its size)",
    ]);
}

#[test]
fn one_that_takes_too_long_is_refused_by_the_limits_name() {
    inspect("prepare_ms = 1\n[plugins.calculator.limits]\ninit_ms = 1").refused_with(&[
        "calculator",
        "preparing it took more than 2 ms (the sandbox's prepare_ms and the plugin's init_ms together)",
    ]);
}
