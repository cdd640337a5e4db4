//! Settings `key.path=value` in addition to a configuration file, and the place of a mistake: a setting, or a line of the
//! file.

use rlf_config::{ConfigError, Lines};
use rlf_train::config::ABSENT_RL_KEYS;

use super::RunConfig;
use crate::error::ConfigurationError;

/// Parses the text of a configuration file with the settings, which replace its values. If the file alone can be parsed,
/// the error names the first setting that breaks it. If it cannot, the settings may add what it lacks; else the error is
/// that of the file.
pub(super) fn parse_with(
    settings: &[String],
    text: &str,
    origin: &str,
) -> Result<RunConfig, ConfigurationError> {
    let mut table: toml::Table = rlf_config::parse(text, origin)?;
    if let Some(error) = absent_key(&table) {
        return Err(with_place(error, origin.to_owned(), text, &[]));
    }
    let mut config: Result<RunConfig, ConfigError> = rlf_config::parse(text, origin);
    for setting in settings {
        let wrong = |problem| ConfigurationError::Setting {
            setting: setting.clone(),
            problem,
        };
        set(&mut table, setting)?;
        if let Some(error) = absent_key(&table) {
            return Err(wrong(error.to_string()));
        }
        let changed = rlf_config::parse(&toml::to_string(&table)?, origin);
        config = match (config, changed) {
            (_, Ok(changed)) => Ok(changed),
            (Ok(_), Err(ConfigError::Invalid { message, .. })) => return Err(wrong(message)),
            (Ok(_), Err(error)) => return Err(error.into()),
            (Err(of_file), Err(_)) => Err(of_file),
        };
    }
    Ok(config?)
}

/// Sets `key.path=value` in a table. The value is TOML; if it is not valid TOML, it is plain text.
fn set(table: &mut toml::Table, setting: &str) -> Result<(), ConfigurationError> {
    let wrong = |problem: String| ConfigurationError::Setting {
        setting: setting.to_owned(),
        problem,
    };
    let (key, value) = setting
        .split_once('=')
        .ok_or_else(|| wrong("write KEY=VALUE, such as rl.steps=20".to_owned()))?;
    let value = value.trim();
    let parsed = toml::from_str::<toml::Table>(&format!("value = {value}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| toml::Value::String(value.to_owned()));
    let mut parts: Vec<&str> = key.trim().split('.').collect();
    let last = parts.pop().unwrap_or_default();
    let mut at = table;
    for part in parts {
        let entry = at
            .entry(part)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()));
        at = entry
            .as_table_mut()
            .ok_or_else(|| wrong(format!("`{part}` is not a table")))?;
    }
    at.insert(last.to_owned(), parsed);
    Ok(())
}

/// Refuses keys of `[rl]` that people expect and that do not exist, and says why not.
fn absent_key(table: &toml::Table) -> Option<ConfigurationError> {
    let rl = table.get("rl").and_then(toml::Value::as_table);
    let set = |(key, reason): &(&str, &str)| {
        let value = rl?.get(*key)?;
        let problem = format!("`rl.{key} = {value}`: {reason}");
        Some(ConfigurationError::value(format!("rl.{key}"), problem))
    };
    ABSENT_RL_KEYS.iter().find_map(set)
}

/// Adds the place of the value that cannot be used: the last setting that set it, or else its line in the file.
pub(super) fn with_place(
    error: ConfigurationError,
    origin: String,
    text: &str,
    settings: &[String],
) -> ConfigurationError {
    let key = error.key().unwrap_or_default();
    let sets_key = |setting: &&String| {
        let set = setting.split('=').next().unwrap_or_default().trim();
        let rest = key.strip_prefix(set);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if let Some(setting) = settings.iter().rfind(sets_key) {
        return ConfigurationError::Setting {
            setting: setting.clone(),
            problem: error.to_string(),
        };
    }
    let lines = Lines::from_toml(text, &origin).ok();
    ConfigurationError::Unusable {
        line: lines.and_then(|lines| lines.nearest_line(key)),
        origin,
        source: error.into(),
    }
}
