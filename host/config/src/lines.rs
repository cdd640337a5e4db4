//! Line numbers of keys, for messages that name the place of a setting.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Value};

use crate::{ConfigError, invalid, line_of};

/// A value of a file, and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The key, relative to the table that was asked for: `["limits", "wall_ms"]`.
    pub key: Vec<String>,
    /// The value.
    pub value: Value,
    /// Line, from 1.
    pub line: usize,
}

impl Setting {
    /// The key in TOML's notation: `http.hosts."api.example.com"`.
    pub fn dotted(&self) -> String {
        let part = |part: &String| {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            if !part.is_empty() && part.chars().all(plain) {
                part.clone()
            } else {
                Value::String(part.clone()).to_string()
            }
        };
        self.key.iter().map(part).collect::<Vec<_>>().join(".")
    }
}

/// The lines of the keys of one file. Its tables may be written under a header, dotted or inline.
///
/// ```
/// let lines = rlf_config::Lines::from_toml("[a]\nb.c = 1\nd = { e = 2 }\n", "demo.toml")?;
/// assert_eq!(lines.line(&["a", "d", "e"]), Some(3));
/// let settings = lines.settings(&["a"]);
/// assert_eq!((settings[0].dotted().as_str(), settings[0].line), ("b.c", 2));
/// # Ok::<(), rlf_config::ConfigError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Lines {
    /// Line of each key. A table has the line of its header, or else of its first mention.
    lines: BTreeMap<Vec<String>, usize>,
    table: toml::Table,
}

impl Lines {
    /// Parses `text`. `origin` names it in messages.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, ConfigError> {
        let refused = |error| invalid(text, origin, &error);
        let mut lines = BTreeMap::new();
        let spanned = DeTable::parse(text).map_err(refused)?;
        visit(text, &mut Vec::new(), spanned.get_ref(), &mut lines);
        let table = toml::from_str(text).map_err(refused)?;
        Ok(Self { lines, table })
    }

    /// The line of a key. A table has the line of its header, or else of its first mention. `None` if the file does not
    /// contain the key.
    pub fn line(&self, key: &[&str]) -> Option<usize> {
        let key: Vec<String> = key.iter().map(|&part| part.to_owned()).collect();
        self.lines.get(&key).copied()
    }

    /// The line of a key in TOML's notation, such as `rl.group_size`. If the file does not contain the key, the line of the
    /// innermost table around it that the file contains.
    pub fn nearest_line(&self, dotted: &str) -> Option<usize> {
        let mut key: Vec<&str> = dotted.split('.').collect();
        while !key.is_empty() {
            if let Some(line) = self.line(&key) {
                return Some(line);
            }
            key.pop();
        }
        None
    }

    /// The keys of the file's top level, with their lines, in the order of the file.
    pub fn top_level(&self) -> Vec<(&str, usize)> {
        let mut keys: Vec<(&str, usize)> = self
            .lines
            .iter()
            .filter_map(|(key, line)| match key.as_slice() {
                [only] => Some((only.as_str(), *line)),
                _ => None,
            })
            .collect();
        keys.sort_by_key(|(_, line)| *line);
        keys
    }

    /// All settings below a table, in the order of the file. Tables inside it are included; an empty table is a setting
    /// itself.
    pub fn settings(&self, table: &[&str]) -> Vec<Setting> {
        let mut at = Some(&self.table);
        for part in table {
            at = at.and_then(|table| table.get(*part)?.as_table());
        }
        let mut settings = Vec::new();
        if let Some(found) = at {
            let mut prefix: Vec<String> = table.iter().map(|&part| part.to_owned()).collect();
            self.collect(table.len(), &mut prefix, found, &mut settings);
        }
        settings.sort_by_key(|setting| setting.line);
        settings
    }

    fn collect(
        &self,
        above: usize,
        path: &mut Vec<String>,
        table: &toml::Table,
        settings: &mut Vec<Setting>,
    ) {
        for (key, value) in table {
            path.push(key.clone());
            match value {
                Value::Table(inner) if !inner.is_empty() => {
                    self.collect(above, path, inner, settings);
                }
                value => settings.push(Setting {
                    key: path[above..].to_vec(),
                    value: value.clone(),
                    line: self.lines.get(path).copied().unwrap_or(0),
                }),
            }
            path.pop();
        }
    }
}

fn visit(
    text: &str,
    path: &mut Vec<String>,
    table: &DeTable<'_>,
    lines: &mut BTreeMap<Vec<String>, usize>,
) {
    for (key, value) in table {
        path.push(key.get_ref().to_string());
        lines.insert(path.clone(), line_of(text, key.span().start));
        descend(text, path, value, lines);
        path.pop();
    }
}

fn descend(
    text: &str,
    path: &mut Vec<String>,
    value: &Spanned<DeValue<'_>>,
    lines: &mut BTreeMap<Vec<String>, usize>,
) {
    // Items of arrays have no names, so they have the line of their array.
    if let DeValue::Table(inner) = value.get_ref() {
        visit(text, path, inner, lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, String, usize)> {
        Lines::from_toml(text, "c.toml")
            .unwrap()
            .settings(&["plugins", "x"])
            .into_iter()
            .map(|setting| (setting.dotted(), setting.value.to_string(), setting.line))
            .collect()
    }

    fn rows(expected: &[(&str, &str, usize)]) -> Vec<(String, String, usize)> {
        expected
            .iter()
            .map(|(key, value, line)| ((*key).to_owned(), (*value).to_owned(), *line))
            .collect()
    }

    #[test]
    fn headers_dotted_keys_and_inline_tables_lead_to_the_line_that_sets_a_value() {
        let expected = |lines: [usize; 4]| {
            rows(&[
                ("hash", "\"ab\"", lines[0]),
                ("data.corpus", "\"c.json\"", lines[1]),
                ("limits.wall_ms", "5", lines[2]),
                ("http.hosts.\"a.b\"", "{}", lines[3]),
            ])
        };
        let headers = "# c\n[plugins.x]\nhash = \"ab\"\n\n[plugins.x.data]\ncorpus = \"c.json\"\n\
                       [plugins.x.limits]\nwall_ms = 5\n[plugins.x.http.hosts.\"a.b\"]\n";
        assert_eq!(found(headers), expected([3, 6, 8, 9]));
        let dotted = "[plugins]\nx.hash = \"ab\"\nx.data.corpus = \"c.json\"\nx.limits.wall_ms = 5\n\
                      x.http.hosts.\"a.b\" = {}\n";
        assert_eq!(found(dotted), expected([2, 3, 4, 5]));
        let inline = "plugins.x = { hash = \"ab\",\n  data = { corpus = \"c.json\" }, limits.wall_ms = 5,\n\
                      http = { hosts = { \"a.b\" = {} } } }\n";
        assert_eq!(found(inline), expected([1, 2, 2, 3]));
    }

    #[test]
    fn a_table_stands_at_its_own_header_or_where_it_is_first_named() {
        let text = "seed = 1\n[plugins.x.http]\ntimeout_ms = 1\n[plugins.x]\nretries = 0\n[rl]\n";
        let lines = Lines::from_toml(text, "c.toml").unwrap();
        assert_eq!(lines.line(&["plugins", "x"]), Some(4));
        assert_eq!(lines.line(&["plugins", "x", "http"]), Some(2));
        assert_eq!(lines.line(&["plugins", "y"]), None);
        assert_eq!(lines.top_level(), [("seed", 1), ("plugins", 2), ("rl", 6)]);
        assert_eq!(lines.nearest_line("plugins.x.http.timeout_ms"), Some(3));
        assert_eq!(lines.nearest_line("plugins.x.http.retries"), Some(2));
        assert_eq!(lines.nearest_line("plugins.y"), Some(2));
        assert_eq!(lines.nearest_line("sft.steps"), None);
        assert_eq!(lines.settings(&["plugins", "y"]), []);
        assert_eq!(lines.settings(&["seed"]), []);
    }

    #[test]
    fn what_is_no_toml_is_refused_with_its_place() {
        let error = Lines::from_toml("a = 1\nb = = 2\n", "c.toml").unwrap_err();
        assert!(error.to_string().starts_with("c.toml:2:"), "{error}");
    }
}
