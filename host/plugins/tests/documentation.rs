//! The examples in the documents are read by the program, and show every key.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rlf_http::{HostRule, HttpRules, SecretRule};
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::manifest::{GateName, PluginManifest};
use rlf_sandbox::{Limits, ScratchFiles};
use serde::Deserialize;
use serde_json::Value;

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The TOML example of a page that follows the line `<!-- example: NAME -->`.
fn example(page: &str, name: &str) -> String {
    let start = format!("<!-- example: {name} -->\n```toml\n");
    let after = page.split(&start).nth(1);
    let after = after.unwrap_or_else(|| panic!("no TOML follows the marker of the example {name}"));
    after.split("```").next().unwrap().to_owned()
}

/// The keys that comments of an example show as alternatives: `# path = "x"`.
fn alternatives(example: &str) -> Vec<String> {
    let lines = example.lines().filter_map(|line| line.strip_prefix("# "));
    lines
        .filter(|line| {
            line.split_once(" = ")
                .is_some_and(|(key, _)| !key.contains(' '))
        })
        .map(str::to_owned)
        .collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    plugins: BTreeMap<String, PluginGrants>,
}

/// Names of the fields of a value.
fn keys(value: &Value) -> BTreeSet<String> {
    let fields = value.as_object().expect("a table");
    fields.keys().cloned().collect()
}

fn keys_of(table: &toml::Value) -> BTreeSet<String> {
    let fields = table.as_table().expect("a table");
    fields.keys().cloned().collect()
}

#[test]
fn the_manifest_in_the_documents_has_every_key_and_is_read() {
    let page = read("docs/plugins.md");
    let example = &example(&page, "manifest");
    let manifest = PluginManifest::parse(example, "docs/plugins.md").unwrap();
    assert_eq!(manifest.gates, BTreeSet::from([GateName::Http]));
    let shown = keys_of(&toml::from_str(example).unwrap());
    let known = keys(&serde_json::to_value(PluginManifest::default()).unwrap());
    assert_eq!(shown, known);
    for gate in GateName::ALL {
        assert!(page.contains(&format!("`{}`", gate.as_str())), "{gate:?}");
    }
}

#[test]
fn the_grants_in_the_documents_have_every_key_and_are_read() {
    let example = &example(&read("docs/plugins.md"), "grants");
    let read: Configuration = rlf_config::parse(example, "docs/plugins.md").unwrap();
    let grants = &read.plugins["wiki"];
    // The documents show the default values.
    assert_eq!(grants.limits, PluginGrants::default().limits);
    assert_eq!(grants.retries, PluginGrants::default().retries);
    let files = grants.files.clone().unwrap();
    let defaults = ScratchFiles {
        outputs: files.outputs.clone(),
        ..ScratchFiles::default()
    };
    assert_eq!(files, defaults);
    let http = grants.http.clone().unwrap();
    let defaults = HttpRules {
        hosts: http.hosts.clone(),
        secrets: http.secrets.clone(),
        certificate_authorities: http.certificate_authorities.clone(),
        ..HttpRules::default()
    };
    assert_eq!(http, defaults);

    let whole: toml::Value = toml::from_str(example).unwrap();
    let shown = &whole["plugins"]["wiki"];
    let mut instead = BTreeSet::new();
    for line in alternatives(example) {
        let line: toml::Value = toml::from_str(&line).unwrap();
        instead.extend(keys_of(&line));
        let parsed = toml::to_string(&line).unwrap();
        rlf_config::parse::<PluginGrants>(&parsed, "a comment of docs/plugins.md").unwrap();
    }
    let known = PluginGrants {
        files: Some(ScratchFiles::default()),
        http: Some(HttpRules::default()),
        ..PluginGrants::default()
    };
    let mut known = serde_json::to_value(known).unwrap();
    // Grants leave out limits that are newer than some runs.
    known["limits"] = serde_json::to_value(Limits::default()).unwrap();
    let both = |shown: BTreeSet<String>| shown.union(&instead).cloned().collect::<BTreeSet<_>>();
    assert_eq!(both(keys_of(shown)), keys(&known));
    for table in ["limits", "files", "http"] {
        assert_eq!(keys_of(&shown[table]), keys(&known[table]), "{table}");
    }
    let every = |table: &toml::Value| -> BTreeSet<String> {
        let entries = table.as_table().unwrap().values();
        entries.flat_map(keys_of).collect()
    };
    let (hosts, secrets) = (&shown["http"]["hosts"], &shown["http"]["secrets"]);
    assert_eq!(
        every(hosts),
        keys(&serde_json::to_value(HostRule::default()).unwrap())
    );
    assert_eq!(
        every(secrets),
        keys(&serde_json::to_value(SecretRule::default()).unwrap())
    );
}
