//! A directory of plugins that a test writes.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::{Ended, Host, Running};

/// A directory of plugins, beside the shipped ones.
pub struct PluginFolder {
    /// The program that uses it.
    pub host: Host,
    folder: TempDir,
}

impl PluginFolder {
    /// A directory with these files: paths in it, and texts.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let plugins = Self {
            host: Host::new(),
            folder: tempfile::tempdir().expect("a temporary folder"),
        };
        for (file, text) in files {
            plugins.write(file, text);
        }
        plugins
    }

    /// The directory's path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The directory's path, as text.
    pub fn name(&self) -> &str {
        self.path().to_str().expect("a plain name")
    }

    /// Writes a file of the directory.
    pub fn write(&self, file: &str, text: &str) -> PathBuf {
        let path = self.path().join(file);
        let folder = path.parent().expect("has a folder");
        fs::create_dir_all(folder).expect("can be made");
        fs::write(&path, text).expect("can be written");
        path
    }

    /// Runs `rlf-host plugin`.
    pub fn plugin(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).wait()
    }

    /// Starts `rlf-host plugin`.
    pub fn start(&self, arguments: &[&str]) -> Running {
        let arguments = arguments.iter().copied();
        self.host.start_plugin_of(self.path(), arguments)
    }

    /// The outcome of `plugin call`.
    pub fn call(&self, plugin: &str, tool: &str, arguments: &Value, further: &[&str]) -> Value {
        let arguments = arguments.to_string();
        let call = ["call", plugin, tool, &arguments, "--json"];
        self.plugin(&[&call[..], further].concat()).json()
    }

    /// Runs `plugin try` with these commands.
    pub fn try_by_hand(&self, plugin: &str, commands: &str) -> Ended {
        let arguments = ["try", plugin];
        self.host.plugin_fed(self.path(), commands, arguments)
    }

    /// Runs `plugin check` on a file or folder of the directory.
    pub fn check(&self, file: &str) -> Ended {
        let file = self.path().join(file);
        self.plugin(&["check", file.to_str().expect("a plain name")])
    }

    /// Calls and grades what `plugin new` makes as tool `words` and as reward `right`.
    pub fn check_new_plugins(&self) {
        let arguments = serde_json::json!({"text": "a red fox", "longest": 1});
        let counted = self.call("words", "words", &arguments, &[]);
        assert_eq!(
            counted["observation"]["content"][0]["structured"],
            serde_json::json!({"words": 3, "longest": ["fox"]})
        );
        let (answer, reference) = ("--answer=paris", "--reference=Paris");
        let graded = self.plugin(&["grade", "right", answer, reference, "--json"]);
        assert_eq!(
            graded.succeeded().json()["terms"],
            serde_json::json!({"right": 1.0, "brief": 1.0})
        );
    }

    /// Grants the gates of what `plugin new` makes as agent `leads`, and calls its tool. Outside of a run, no policy answers.
    pub fn check_new_agent(&self, tool: &str) {
        let config = self.path().join("leads/agent.toml");
        let config = ["--config", config.to_str().expect("a plain name")];
        let grant = ["grant", "leads", "--gate", "model", "--gate", "tools"];
        self.plugin(&[&grant[..], &config].concat()).succeeded();
        let messages = serde_json::json!([{"role": "user", "content": "1 + 2?"}]);
        let task =
            serde_json::json!({"id": "1", "source": "test", "messages": messages, "tools": []});
        let led = self.call("leads", tool, &task, &config);
        assert_eq!(led["ended"], "failed", "{led}");
        let said = led["observation"]["content"][0]["text"].as_str();
        let refusal = "`policy` is the policy of a run";
        assert!(said.is_some_and(|said| said.contains(refusal)), "{led}");
    }
}
