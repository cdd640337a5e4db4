//! Prompts as text files that a user can read and change.
//!
//! A set of prompts is shipped in the program. [`write_to`] writes it into a folder, and [`Prompts::load`] takes the
//! prompts of such a folder in their place. A prompt is a Jinja template, and may use only the variables that its stage
//! has: a misspelt one is an error before a model is asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};

/// Extension of the files.
const EXTENSION: &str = "txt";
/// Maximum number of steps of rendering a template, so that an endless loop ends.
const FUEL: u64 = 1_000_000;

/// A prompt that is shipped.
#[derive(Debug, Clone, Copy)]
pub struct Shipped {
    /// Name of the prompt. Its file is called `NAME.txt`.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// Variables that it must use.
    pub needs: &'static [&'static str],
    /// Variables that it may use as well.
    pub knows: &'static [&'static str],
}

/// The reason why prompts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// The system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// List, read or write.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file is not a prompt of the set.
    #[error("{}: there is no prompt of this name; there are: {known}", path.display())]
    NoSuchPrompt {
        /// The file.
        path: PathBuf,
        /// Names of all prompts.
        known: String,
    },
    /// The template is wrong, or cannot be filled in.
    #[error("prompt {origin}: {message}")]
    Template {
        /// The file, or the name of a shipped prompt.
        origin: String,
        /// The mistake, with its line.
        message: String,
    },
    /// A variable is missing or not known.
    #[error("prompt {origin}: {mistake}; it needs {needs} and may use {knows}")]
    Variables {
        /// The file, or the name of a shipped prompt.
        origin: String,
        /// The mistake.
        mistake: String,
        /// Variables that it needs.
        needs: String,
        /// Variables that it may use.
        knows: String,
    },
}

/// A set of prompts.
#[derive(Debug)]
pub struct Prompts {
    templates: Environment<'static>,
    /// The file of each prompt, or the prompt's name if it is shipped.
    origins: BTreeMap<&'static str, String>,
}

impl Prompts {
    /// Loads the shipped prompts. Prompts in `folder`, if one is given, replace the shipped ones of the same name.
    pub fn load(set: &'static [Shipped], folder: Option<&Path>) -> Result<Self, PromptError> {
        let mut templates = Environment::new();
        templates.set_auto_escape_callback(|_| AutoEscape::None);
        templates.set_undefined_behavior(UndefinedBehavior::Strict);
        templates.set_fuel(Some(FUEL));
        let mut prompts = Self {
            templates,
            origins: BTreeMap::new(),
        };
        let changed = folder.map_or(Ok(BTreeMap::new()), |folder| read(set, folder))?;
        for shipped in set {
            match changed.get(shipped.name) {
                Some((path, text)) => {
                    prompts.add(shipped, path.display().to_string(), text.clone())?;
                }
                None => prompts.add(shipped, shipped.name.to_owned(), shipped.text.to_owned())?,
            }
        }
        Ok(prompts)
    }

    fn add(&mut self, shipped: &Shipped, origin: String, text: String) -> Result<(), PromptError> {
        let wrong = |error: minijinja::Error| PromptError::Template {
            origin: origin.clone(),
            message: shown(&error),
        };
        self.templates
            .add_template_owned(shipped.name, text)
            .map_err(wrong)?;
        let used = self
            .templates
            .get_template(shipped.name)
            .map_err(wrong)?
            .undeclared_variables(false);
        let missing = shipped.needs.iter().find(|need| !used.contains(**need));
        let known = |name: &str| shipped.needs.contains(&name) || shipped.knows.contains(&name);
        let mut unknown: Vec<&String> = used.iter().filter(|name| !known(name)).collect();
        unknown.sort();
        let mistake = match (missing, unknown.first()) {
            (Some(missing), _) => format!("it does not use {{{{ {missing} }}}}"),
            (None, Some(unknown)) => format!("there is no variable {{{{ {unknown} }}}}"),
            (None, None) => {
                self.origins.insert(shipped.name, origin);
                return Ok(());
            }
        };
        Err(PromptError::Variables {
            origin,
            mistake,
            needs: listed(shipped.needs),
            knows: listed(shipped.knows),
        })
    }

    /// Fills in a prompt. `name` is one of the set, and each value is the text of a variable. An empty text is false in
    /// conditions.
    pub fn render(&self, name: &str, values: &[(&str, &str)]) -> Result<String, PromptError> {
        let template = self.templates.get_template(name);
        let filled = template
            .and_then(|template| template.render(Value::from_pairs(values.iter().copied())));
        let filled = filled.map_err(|error| PromptError::Template {
            origin: self
                .origins
                .get(name)
                .map_or(name, String::as_str)
                .to_owned(),
            message: shown(&error),
        })?;
        Ok(filled.trim().to_owned())
    }
}

/// Writes the shipped prompts into a folder, and returns the files. Existing files are kept and not returned.
pub fn write_to(set: &[Shipped], folder: &Path) -> Result<Vec<PathBuf>, PromptError> {
    fs::create_dir_all(folder).map_err(|source| io_error("make", folder, source))?;
    let mut written = Vec::new();
    for shipped in set {
        let path = folder.join(shipped.name).with_extension(EXTENSION);
        if !path.exists() {
            rlf_files::write(&path, shipped.text.as_bytes())
                .map_err(|source| io_error("write", &path, source))?;
            written.push(path);
        }
    }
    Ok(written)
}

/// The prompts of a folder, by name.
fn read(
    set: &'static [Shipped],
    folder: &Path,
) -> Result<BTreeMap<&'static str, (PathBuf, String)>, PromptError> {
    let entries = fs::read_dir(folder).map_err(|source| io_error("list", folder, source))?;
    let mut found = BTreeMap::new();
    for entry in entries {
        let path = entry
            .map_err(|source| io_error("list", folder, source))?
            .path();
        let is_prompt = path.extension().is_some_and(|one| one == EXTENSION);
        if !is_prompt || rlf_files::is_partial(&path) {
            continue;
        }
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let Some(shipped) = set.iter().find(|shipped| Some(shipped.name) == stem) else {
            let names: Vec<&str> = set.iter().map(|shipped| shipped.name).collect();
            let known = names.join(", ");
            return Err(PromptError::NoSuchPrompt { path, known });
        };
        let text = fs::read_to_string(&path).map_err(|source| io_error("read", &path, source))?;
        found.insert(shipped.name, (path, text));
    }
    Ok(found)
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> PromptError {
    let path = path.to_owned();
    PromptError::Io {
        action,
        path,
        source,
    }
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() {
        "nothing else".to_owned()
    } else {
        names.join(", ")
    }
}

/// An error of a template with its line.
fn shown(error: &minijinja::Error) -> String {
    let line = error
        .line()
        .map_or(String::new(), |line| format!("line {line}: "));
    let detail = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned);
    line + &detail
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: &[Shipped] = &[Shipped {
        name: "greet",
        text: "Greet {{ name }}{% if twice %} twice{% endif %}. {braces} stay.\n",
        needs: &["name"],
        knows: &["twice"],
    }];

    fn load(text: &str) -> Result<Prompts, PromptError> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("greet.txt"), text).unwrap();
        Prompts::load(SET, Some(folder.path()))
    }

    #[test]
    fn values_are_filled_in_once_and_never_read_as_templates() {
        let prompts = Prompts::load(SET, None).unwrap();
        let values = [("name", "{{ twice }} <&>"), ("twice", "yes")];
        let filled = prompts.render("greet", &values).unwrap();
        assert_eq!(filled, "Greet {{ twice }} <&> twice. {braces} stay.");
    }

    #[test]
    fn a_folder_replaces_what_it_has_and_mistakes_are_named_with_their_file() {
        assert!(load("Say {{ name }}.").is_ok());
        for (text, mistake) in [
            ("Say nothing.", "it does not use {{ name }}"),
            ("{{ name }} {{ nme }}", "there is no variable {{ nme }}"),
            ("{{ name }}\n{% if %}", "line 2: "),
        ] {
            let error = load(text).unwrap_err().to_string();
            assert!(error.contains("greet.txt: "), "{error}");
            assert!(error.contains(mistake), "{error}");
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("gret.txt"), "").unwrap();
        let error = Prompts::load(SET, Some(folder.path()))
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with("there is no prompt of this name; there are: greet"),
            "{error}"
        );
    }

    #[test]
    fn a_template_that_loops_ends() {
        let prompts = load(
            "{{ name }}{% for a in range(10000) %}{% for b in range(10000) %}x{% endfor %}{% endfor %}",
        );
        // `range` is a function of templates, and no variable of the stage.
        assert!(matches!(prompts, Err(PromptError::Variables { .. })));
        let prompts = load(
            "{{ name }}{% for a in name %}{% for b in name %}{% for c in name %}x{% endfor %}{% endfor %}{% endfor %}",
        );
        let name = "n".repeat(1_000);
        assert!(
            prompts
                .unwrap()
                .render("greet", &[("name", &name)])
                .is_err()
        );
    }

    #[test]
    fn shipped_prompts_are_written_and_a_changed_one_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(write_to(SET, folder.path()).unwrap().len(), 1);
        fs::write(folder.path().join("greet.txt"), "Hm {{ name }}").unwrap();
        assert!(write_to(SET, folder.path()).unwrap().is_empty());
        let prompts = Prompts::load(SET, Some(folder.path())).unwrap();
        assert_eq!(prompts.render("greet", &[("name", "x")]).unwrap(), "Hm x");
    }
}
