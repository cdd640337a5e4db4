//! The table `[user]`: an endpoint or the name of a model, and how it plays users.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use rlf_endpoint::{EndpointConfig, EndpointConfigError};
use rlf_models::ModelConfig;
use rlf_rollout::user::STOP;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error as _, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::ConfigurationError;

/// Default instructions of the model, if `prompt` names no file.
const PROMPT: &str = "\
You play a person who writes to an assistant in a chat. Who you are and what you want, which the assistant does not know:

{instruction}

How to play this person:
- Write what the person would type and nothing else: one short message, in the first person and in your own words.
- Say what you want bit by bit. Give a detail when it is needed or when you are asked for it.
- You know only what is written above. Where you are asked for anything else, say that you do not know or do not mind.
- Stay with what you want, and with how the person is described, whatever the assistant says.
- When everything you want is done, or it is clear that it will not be, write {stop} and nothing beside it. Do not write \
it earlier.
";

/// The model that plays users, and its limits. In the table `[user]`, the keys of the endpoint stand beside the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UserConfig {
    /// The endpoint that is asked. Without `url`, its `model` is the name of a table `[models.NAME]`, and that model is asked.
    #[serde(flatten)]
    pub endpoint: EndpointConfig,
    /// Maximum number of the user's messages in one episode, after which the user leaves. Default 30.
    pub max_turns: u32,
    /// Word in a reply that means the user leaves. The agent does not see that reply. Default `###STOP###`.
    pub stop: String,
    /// Text file with the model's instructions. `{instruction}` is replaced by the task's instruction, and `{stop}` by
    /// the stop word. Default: a built-in text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PathBuf>,
}

impl Default for UserConfig {
    fn default() -> Self {
        Self {
            endpoint: EndpointConfig::default(),
            max_turns: 30,
            stop: STOP.to_owned(),
            prompt: None,
        }
    }
}

impl UserConfig {
    /// Resolves relative paths from `base`.
    pub(crate) fn resolve_paths(&mut self, base: &Path) {
        let paths = [&mut self.endpoint.key_file, &mut self.prompt];
        for path in paths.into_iter().flatten() {
            *path = base.join(&*path);
        }
    }

    /// The name of the table `[models.NAME]` whose model plays users. None if the endpoint is in `[user]` itself.
    pub(crate) fn named_model(&self) -> Option<&str> {
        let name = self.endpoint.model.as_str();
        (self.endpoint.url.is_empty() && !name.trim().is_empty()).then_some(name)
    }

    /// Returns an error if `[user]` names a model that is not in `[models]`.
    pub(crate) fn check_model(
        &self,
        models: &BTreeMap<String, ModelConfig>,
    ) -> Result<(), ConfigurationError> {
        match self.named_model() {
            Some(name) if !models.contains_key(name) => {
                Err(no_model(name, models.keys().map(String::as_str)))
            }
            _ => Ok(()),
        }
    }

    /// Returns an error for settings that can never work. Reads no key and no file.
    pub(crate) fn check(&self) -> Result<(), ConfigurationError> {
        if let Some(name) = self.named_model() {
            let alone = EndpointConfig {
                model: name.to_owned(),
                ..EndpointConfig::default()
            };
            if self.endpoint != alone {
                let text = format!(
                    " is missing; write it, or leave the other keys of the endpoint to [models.{name}], which has its own"
                );
                return Err(wrong("url", &text));
            }
        } else {
            (self.endpoint.check()).map_err(|error| wrong_endpoint(&error))?;
        }
        if !(1..=1_000).contains(&self.max_turns) {
            let turns = self.max_turns;
            return Err(wrong("max_turns", &format!(" = {turns}: write 1 to 1000")));
        }
        if self.stop.trim().is_empty() {
            return Err(wrong(
                "stop",
                &format!(" is blank, and every reply contains that; write a word such as {STOP:?}"),
            ));
        }
        Ok(())
    }

    pub(super) fn prompt(&self) -> Result<String, ConfigurationError> {
        let Some(path) = &self.prompt else {
            return Ok(PROMPT.to_owned());
        };
        let prompt =
            rlf_config::read(path).map_err(|error| wrong("prompt", &format!(": {error}")))?;
        if !prompt.contains("{instruction}") {
            return Err(wrong(
                "prompt",
                &format!(
                    ": {} has no {{instruction}} in it, so that no user would know what they want; write it where the \
                 task's instruction belongs",
                    path.display()
                ),
            ));
        }
        Ok(prompt)
    }
}

impl<'de> Deserialize<'de> for UserConfig {
    /// Reads one table into two structs. `#[serde(flatten)]` would lose the line of a wrong key and the known keys.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = UserConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<UserConfig, M::Error> {
                let mut user = UserConfig::default();
                let keys = EndpointKeys {
                    map,
                    user: &mut user,
                };
                let endpoint = EndpointConfig::deserialize(MapAccessDeserializer::new(keys))?;
                Ok(UserConfig { endpoint, ..user })
            }
        }
        deserializer.deserialize_map(Table)
    }
}

/// The table without the keys of [`UserConfig`] itself, whose values it puts into `user`.
struct EndpointKeys<'u, M> {
    map: M,
    user: &'u mut UserConfig,
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for EndpointKeys<'_, M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        mut seed: K,
    ) -> Result<Option<K::Value>, M::Error> {
        loop {
            seed = match self.map.next_key_seed(KeySeed(seed))? {
                None => return Ok(None),
                Some(Key::Endpoint(key)) => return Ok(Some(key)),
                Some(Key::MaxTurns(seed)) => {
                    self.user.max_turns = self.map.next_value()?;
                    seed
                }
                Some(Key::Stop(seed)) => {
                    self.user.stop = self.map.next_value()?;
                    seed
                }
                Some(Key::Prompt(seed)) => {
                    self.user.prompt = self.map.next_value()?;
                    seed
                }
            };
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        self.map.next_value_seed(seed)
    }
}

/// A key of the table: one of the endpoint, or one of [`UserConfig`] itself with the seed that has not been used.
enum Key<K, E> {
    Endpoint(E),
    MaxTurns(K),
    Stop(K),
    Prompt(K),
}

struct KeySeed<K>(K);

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for KeySeed<K> {
    type Value = Key<K, K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let key = String::deserialize(deserializer)?;
        match key.as_str() {
            "max_turns" => Ok(Key::MaxTurns(self.0)),
            "stop" => Ok(Key::Stop(self.0)),
            "prompt" => Ok(Key::Prompt(self.0)),
            _ => {
                let endpoint = self.0.deserialize(key.into_deserializer());
                endpoint.map(Key::Endpoint).map_err(|error: D::Error| {
                    // The message ends with the keys of the endpoint, between which a reader looks for the right one.
                    let known = error.to_string();
                    D::Error::custom(format!("{}, `max_turns`, `stop`, `prompt`", known.trim()))
                })
            }
        }
    }
}

/// The error of a name that none of the known models has.
pub(super) fn no_model<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> ConfigurationError {
    let near = rlf_config::nearest(name, known);
    let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    let text = format!(
        " = {name:?}: there is no table [models.{name}]; write it, or `url` for an endpoint of the users' own{near}"
    );
    wrong("model", &text)
}

/// The error of a key of `[user]`. The text goes on after the key.
pub(super) fn wrong(key: &str, text: &str) -> ConfigurationError {
    let key = format!("user.{key}");
    let problem = format!("{key}{text}");
    ConfigurationError::value(key, problem)
}

/// The error of a key of the endpoint.
pub(super) fn wrong_endpoint(error: &EndpointConfigError) -> ConfigurationError {
    wrong(error.key, &format!(": {}", error.reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        rlf_config::parse::<UserConfig>(text, "c.toml")
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn one_table_has_the_keys_of_the_endpoint_and_those_of_the_user() {
        let text = "url = \"http://127.0.0.1:1/v1\"\nmax_turns = 3\nmodel = \"m\"\nstop = \"bye\"\n\
                    prompt = \"p.txt\"\ntimeout_ms = 5\nextra = { a = 1 }\n";
        let user: UserConfig = rlf_config::parse(text, "c.toml").unwrap();
        assert_eq!((user.max_turns, user.stop.as_str()), (3, "bye"));
        assert_eq!(user.prompt.as_deref(), Some(Path::new("p.txt")));
        assert_eq!(user.endpoint.model, "m");
        assert_eq!(user.endpoint.timeout.as_millis(), 5);
        assert_eq!(user.endpoint.extra["a"], 1);
        let written = toml::to_string(&user).unwrap();
        assert_eq!(
            rlf_config::parse::<UserConfig>(&written, "w.toml").unwrap(),
            user
        );
        assert_eq!(
            rlf_config::parse::<UserConfig>("", "c.toml").unwrap(),
            UserConfig::default()
        );
    }

    #[test]
    fn a_wrong_key_or_value_has_its_line_and_the_nearest_key() {
        assert_eq!(
            message("model = \"m\"\nmax_turn = 3\n"),
            "c.toml:2:1: unknown key `max_turn`; did you mean `max_turns`?"
        );
        assert_eq!(
            message("stop = \"x\"\nretrys = 3\n"),
            "c.toml:2:1: unknown key `retrys`; did you mean `retries`?"
        );
        assert!(message("zzz = 3\n").contains("extra, max_turns, stop, prompt"));
        assert!(message("\nmax_turns = \"x\"\n").starts_with("c.toml:2:13: invalid type"));
        assert!(message("\nretries = \"x\"\n").starts_with("c.toml:2:11: invalid type"));
    }

    #[test]
    fn a_model_is_named_alone_and_must_be_there() {
        let read = |text: &str| rlf_config::parse::<UserConfig>(text, "c.toml").unwrap();
        let named = read("model = \"npc\"\nmax_turns = 5\n");
        assert_eq!(named.named_model(), Some("npc"));
        named.check().unwrap();
        let own = read("model = \"npc\"\nurl = \"http://a/v1\"\n");
        assert_eq!(own.named_model(), None);

        let models = |name: &str| BTreeMap::from([(name.to_owned(), ModelConfig::default())]);
        named.check_model(&models("npc")).unwrap();
        own.check_model(&BTreeMap::new()).unwrap();
        let error = named.check_model(&models("npd")).unwrap_err().to_string();
        assert!(
            error.starts_with("user.model = \"npc\": there is no table"),
            "{error}"
        );
        assert!(error.ends_with("did you mean `npd`?"), "{error}");

        let both = read("model = \"npc\"\ntemperature = 0.5\n");
        let error = both.check().unwrap_err().to_string();
        assert!(error.starts_with("user.url is missing"), "{error}");
        assert!(error.contains("[models.npc]"), "{error}");
    }
}
