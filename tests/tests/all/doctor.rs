//! `rlf-host doctor` reports the hardware of this machine, and the device that a configuration would use.

use std::fs;

use rlf_tests::Host;
use serde_json::Value;

#[test]
fn the_doctor_tells_processor_devices_cache_and_pools() {
    let host = Host::new();
    let report = host.run(["doctor", "--json"]).succeeded().json();
    assert!(report["threads"].as_u64() >= Some(1), "{report}");
    assert!(report["processor"].is_string(), "{report}");
    assert!(report["simd"].is_string(), "{report}");
    // Each line has one of the two: a device, or the reason why there is none.
    for (found, missing) in [
        ("cuda", "cuda_missing"),
        ("wasm_target", "wasm_target_missing"),
    ] {
        assert_ne!(
            report[found].is_string(),
            report[missing].is_string(),
            "{report}"
        );
    }
    assert!(report["pools"]["instances"].as_u64() >= Some(1), "{report}");
    let cache = report["component_cache"].as_str().expect("is a path");
    assert!(cache.ends_with("rlf-host/components"), "{cache}");
    let printed = host.run(["doctor"]);
    for row in [
        "processor",
        "cuda",
        "wasm target",
        "sandbox  ",
        "calls at once",
        "nested calls",
        "after a call, ",
    ] {
        assert!(
            printed.succeeded().stdout.contains(row),
            "no `{row}`: {printed}"
        );
    }
}

#[test]
fn the_doctor_says_which_device_a_configuration_uses() {
    let host = Host::new();
    let report = host.run(["doctor", "configs/quickstart.toml", "--json"]);
    let config = &report.succeeded().json()["config"];
    assert_eq!(config["device"], "cpu");
    assert!(config["workers"].as_u64() >= Some(1), "{config}");

    let folder = tempfile::tempdir().expect("a temporary folder");
    let wrong = folder.path().join("wrong.toml");
    std::fs::write(&wrong, "sead = 1\n").expect("can be written");
    let printed = host.run(["doctor", wrong.to_str().expect("a plain name")]);
    assert_eq!(printed.code(), Some(1), "{printed}");
    let told = "wrong.toml:1:1: unknown key `sead`";
    assert!(printed.stdout.contains(told), "{printed}");
}

#[test]
fn the_cache_is_measured_and_emptied() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = folder.path().join("components");
    let config = folder.path().join("cache.toml");
    let text = format!("[sandbox]\ncache = {:?}\n", cache.display().to_string());
    fs::write(&config, text).expect("can be written");
    let config = config.to_str().expect("a plain name");
    let measured = |further: &[&str]| {
        let arguments = ["cache", "--config", config, "--json"];
        host.run([&arguments[..], further].concat())
            .succeeded()
            .json()
    };
    let bytes = |report: &Value, key: &str| report[key].as_u64().expect("a number");
    let empty = measured(&[]);
    assert_eq!((bytes(&empty, "entries"), bytes(&empty, "bytes")), (0, 0));
    let call = r#"{"expression": "1+1"}"#;
    host.plugin(["call", "calculator", "calculate", call, "--config", config])
        .succeeded();
    let filled = measured(&[]);
    assert!(bytes(&filled, "entries") > 0, "{filled}");
    assert_eq!(measured(&["--keep", "1000"])["bytes"], filled["bytes"]);
    let emptied = measured(&["--keep", "0"]);
    assert_eq!(emptied["entries"], 0, "{emptied}");
    assert_eq!(emptied["removed_bytes"], filled["bytes"]);
    // What is gone is compiled again.
    host.plugin(["call", "calculator", "calculate", call, "--config", config])
        .succeeded();
    let shown = host.run(["cache", "--config", config]);
    assert!(shown.succeeded().stdout.contains(" together\n"), "{shown}");
}
