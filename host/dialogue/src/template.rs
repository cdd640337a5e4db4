//! Chat templates of Hugging Face models: from messages to the text a model was trained to read.
//!
//! Templates are Jinja, written against Python. They are rendered here with minijinja and what
//! transformers adds to it (`raise_exception`, `strftime_now`, `tojson` as `json.dumps`, Python's
//! string methods), byte for byte as transformers does.

use std::path::{Path, PathBuf};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Kwargs;
use minijinja::{Environment, Error, ErrorKind, Output, State, Value};
use serde_json::{Map, Value as Json};

use crate::message::{Message, Role};
use crate::protocol::{THINK_CLOSE, THINK_OPEN};
use crate::python;
use crate::tool::ToolDefinition;

/// The template of the small models trained from scratch, and its tokens.
pub mod small {
    /// The template's source: one token for each role, tools in one line each, calls without white space.
    pub const SOURCE: &str = include_str!("../templates/small.jinja");

    /// The added tokens of a tokenizer for it, in the order of their ids. They keep prompts, calls and answers short.
    pub const SPECIAL_TOKENS: [&str; 11] = [
        "<|endoftext|>",
        "<|end|>",
        "<|system|>",
        "<|user|>",
        "<|assistant|>",
        "<tool_call>",
        "</tool_call>",
        "<tool_response>",
        "</tool_response>",
        "<answer>",
        "</answer>",
    ];
}

/// The reason why a template could not be loaded or rendered.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The file could not be read.
    #[error("cannot read the chat template {}: {source}", path.display())]
    Read {
        /// The file asked for.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A `tokenizer_config.json` without a usable template.
    #[error(
        "{}: {message}; give the template as a .jinja file instead (models publish it as \
         chat_template.jinja or in tokenizer_config.json)", path.display()
    )]
    NoTemplate {
        /// The file asked for.
        path: PathBuf,
        /// The missing part.
        message: String,
    },
    /// The source is not a template.
    #[error("the chat template {origin} does not parse: {message}")]
    Syntax {
        /// The file, or a name instead of one.
        origin: String,
        /// minijinja's error, with its line.
        message: String,
    },
    /// The template refused the conversation, by `raise_exception` or by another error in it.
    #[error("the chat template {origin} cannot render this conversation: {message}")]
    Render {
        /// The file, or a name instead of one.
        origin: String,
        /// minijinja's error, with its line.
        message: String,
    },
    /// No private-use character is left to serve as a mark.
    #[error(
        "a text uses every character reserved for private use, so none is left to mark untrusted \
         text with; it is not text that people write, remove it from the data"
    )]
    NoMark,
}

/// The input of a template.
#[derive(Debug, Clone, Copy)]
pub struct RenderInput<'a> {
    /// The conversation so far.
    pub messages: &'a [Message],
    /// The tools on offer. If there are none, the template's `tools` is undefined.
    pub tools: &'a [ToolDefinition],
    /// Passed to the template if set.
    pub enable_thinking: Option<bool>,
    /// True if the text ends where the model's turn begins.
    pub add_generation_prompt: bool,
}

/// A chat template, compiled.
#[derive(Debug, Clone)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    origin: String,
    /// `bos_token`, `eos_token` and the like.
    tokens: Vec<(String, String)>,
    /// True if the template does not know reasoning, so that a deployment leaves it inside the content.
    writes_reasoning_inside: bool,
}

const NAME: &str = "chat";

/// Limit of one rendering. A thousand messages take less than a hundredth of it. An endless loop reaches it in a second.
const MAX_INSTRUCTIONS: u64 = 20_000_000;

impl ChatTemplate {
    /// Compiles Jinja source; `origin` names it in messages.
    pub fn from_source(source: &str, origin: &str) -> Result<Self, TemplateError> {
        let mut environment = Environment::new();
        environment.set_fuel(Some(MAX_INSTRUCTIONS));
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build();
        let fail = |error: &Error| TemplateError::Syntax {
            origin: origin.to_owned(),
            message: describe(error),
        };
        environment.set_syntax(syntax.map_err(|error| fail(&error))?);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.set_formatter(|out: &mut Output, _: &mut State, value: &Value| {
            let mut text = String::new();
            python::write_str(value, &mut text)?;
            out.write_str(&text).map_err(Error::from)
        });
        environment.add_filter("tojson", |value: &Value, arguments: Kwargs| {
            python::tojson(value, &arguments)
        });
        environment.add_filter("string", |value: &Value| -> Result<String, Error> {
            let mut text = String::new();
            python::write_str(value, &mut text)?;
            Ok(text)
        });
        environment.add_function(
            "raise_exception",
            |message: String| -> Result<Value, Error> {
                Err(Error::new(ErrorKind::InvalidOperation, message))
            },
        );
        environment.add_function("strftime_now", |format: &str| {
            python::strftime_fixed(format)
        });
        environment
            .add_template_owned(NAME, without_generation_tags(source))
            .map_err(|error| fail(&error))?;
        Ok(Self {
            environment,
            source: source.to_owned(),
            origin: origin.to_owned(),
            tokens: Vec::new(),
            writes_reasoning_inside: !source.contains("reasoning_content")
                && !source.contains(THINK_CLOSE),
        })
    }

    /// Reads a `.jinja` file, a `tokenizer_config.json`, or a model's folder that has either.
    pub fn load(path: &Path) -> Result<Self, TemplateError> {
        if path.is_dir() {
            let config = path.join("tokenizer_config.json");
            let jinja = path.join("chat_template.jinja");
            if !jinja.is_file() {
                return Self::load(&config);
            }
            let mut template = Self::load(&jinja)?;
            if config.is_file() {
                template.tokens = special_tokens(&read_json(&config)?);
            }
            return Ok(template);
        }
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            return Self::from_tokenizer_config(path, &read_json(path)?);
        }
        Self::from_source(&read(path)?, &path.display().to_string())
    }

    fn from_tokenizer_config(path: &Path, config: &Json) -> Result<Self, TemplateError> {
        let missing = |message: &str| TemplateError::NoTemplate {
            path: path.to_owned(),
            message: message.to_owned(),
        };
        let named = |name: &str| {
            let known = config.get("chat_template")?.as_array()?;
            let named = known
                .iter()
                .find(|entry| entry.get("name").is_some_and(|n| n == name))?;
            named.get("template")?.as_str()
        };
        let source = config
            .get("chat_template")
            .ok_or_else(|| missing("no `chat_template`"))?
            .as_str()
            .or_else(|| named("tool_use"))
            .or_else(|| named("default"))
            .ok_or_else(|| missing("`chat_template` is neither text nor a list of named texts"))?;
        let mut template = Self::from_source(source, &path.display().to_string())?;
        template.tokens = special_tokens(config);
        Ok(template)
    }

    /// The template of small models, [`small::SOURCE`].
    ///
    /// # Panics
    /// Never: the source is part of the crate, and a test compiles it.
    pub fn small() -> Self {
        Self::from_source(small::SOURCE, "small.jinja").expect("shipped and tested with the crate")
    }

    pub(crate) fn writes_reasoning_inside(&self) -> bool {
        self.writes_reasoning_inside
    }

    /// Its Jinja source.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The special tokens it may write, by the names of tokenizer_config.json (`eos_token`, ..).
    pub fn special_tokens(&self) -> &[(String, String)] {
        &self.tokens
    }

    /// The file it came from, or a name instead of one.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The text of a conversation, as transformers' `apply_chat_template` gives it.
    pub fn render(&self, input: &RenderInput) -> Result<String, TemplateError> {
        self.render_with(input, str::to_owned)
    }

    /// Like [`Self::render`], from messages and tools as JSON in the form of OpenAI's API. `variables` reach the
    /// template by their names.
    pub fn render_json(
        &self,
        messages: &Json,
        tools: Option<&Json>,
        variables: &Map<String, Json>,
    ) -> Result<String, TemplateError> {
        let keep = &|text: &str| text.to_owned();
        let mut context: Vec<(String, Value)> = variables
            .iter()
            .map(|(name, value)| (name.clone(), value_of(value, keep)))
            .collect();
        context.push(("messages".into(), value_of(messages, keep)));
        context.push((
            "tools".into(),
            tools.map_or(Value::from(()), |tools| value_of(tools, keep)),
        ));
        self.render_context(context)
    }

    /// Like [`Self::render`], but passes every text that is not the template's own through `untrusted`.
    pub(crate) fn render_with(
        &self,
        input: &RenderInput,
        untrusted: impl Fn(&str) -> String,
    ) -> Result<String, TemplateError> {
        let messages: Vec<Value> = input
            .messages
            .iter()
            .map(|message| self.message_value(message, &untrusted))
            .collect();
        let tools = if input.tools.is_empty() {
            Value::from(())
        } else {
            input
                .tools
                .iter()
                .map(|tool| tool_value(tool, &untrusted))
                .collect()
        };
        let mut context = vec![
            ("messages".to_owned(), Value::from(messages)),
            ("tools".to_owned(), tools),
            (
                "add_generation_prompt".to_owned(),
                Value::from(input.add_generation_prompt),
            ),
        ];
        if let Some(enable) = input.enable_thinking {
            context.push(("enable_thinking".to_owned(), Value::from(enable)));
        }
        self.render_context(context)
    }

    fn render_context(&self, mut context: Vec<(String, Value)>) -> Result<String, TemplateError> {
        let fail = |error: &Error| TemplateError::Render {
            origin: self.origin.clone(),
            message: describe(error),
        };
        let token = |(name, token): &(String, String)| (name.clone(), Value::from(token));
        context.extend(self.tokens.iter().map(token));
        let template = self
            .environment
            .get_template(NAME)
            .map_err(|error| fail(&error))?;
        template
            .render(Value::from_pairs(context))
            .map_err(|error| fail(&error))
    }

    fn message_value(&self, message: &Message, untrusted: &impl Fn(&str) -> String) -> Value {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        let mut content = untrusted(&message.plain_text());
        let mut members = vec![("role", Value::from(role))];
        if let Some(reasoning) = &message.reasoning_content {
            let reasoning = untrusted(reasoning);
            if self.writes_reasoning_inside {
                content = format!("{THINK_OPEN}{reasoning}{THINK_CLOSE}{content}");
            } else {
                members.push(("reasoning_content", Value::from(reasoning)));
            }
        }
        members.push(("content", Value::from(content)));
        if !message.tool_calls.is_empty() {
            let calls = message.tool_calls.iter().map(|call| {
                let function = Value::from_pairs([
                    ("name", Value::from(untrusted(&call.name))),
                    ("arguments", value_of(&call.arguments, untrusted)),
                ]);
                Value::from_pairs([("type", Value::from("function")), ("function", function)])
            });
            members.push(("tool_calls", calls.collect()));
        }
        Value::from_pairs(members)
    }
}

/// A tool as OpenAI's API and transformers give it to a template.
fn tool_value(tool: &ToolDefinition, untrusted: &impl Fn(&str) -> String) -> Value {
    let function = Value::from_pairs([
        ("name", Value::from(untrusted(&tool.name))),
        ("description", Value::from(untrusted(&tool.description))),
        ("parameters", value_of(&tool.input_schema, untrusted)),
    ]);
    Value::from_pairs([("type", Value::from("function")), ("function", function)])
}

fn value_of(json: &Json, untrusted: &impl Fn(&str) -> String) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(value) => Value::from(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Value::from(value),
            (None, Some(value)) => Value::from(value),
            (None, None) => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(untrusted(text)),
        Json::Array(items) => items.iter().map(|item| value_of(item, untrusted)).collect(),
        Json::Object(members) => Value::from_pairs(
            members
                .iter()
                .map(|(key, value)| (untrusted(key), value_of(value, untrusted))),
        ),
    }
}

/// minijinja's message with the place and what caused it.
fn describe(error: &Error) -> String {
    let mut message = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned);
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        message = format!("{message}: {inner}");
        cause = inner.source();
    }
    match error.line() {
        Some(line) => format!("line {line}: {message}"),
        None => message,
    }
}

/// Replaces `{% generation %}` tags by blocks that change nothing. Other trainers derive their mask from these tags;
/// here it comes from provenance.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let Some(end) = tag.find("%}") else {
            rest = tag;
            break;
        };
        let (tag, after) = tag.split_at(end);
        match tag[2..].trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+') {
            "generation" => out.push_str(&tag.replacen("generation", "if true", 1)),
            "endgeneration" => out.push_str(&tag.replacen("endgeneration", "endif", 1)),
            _ => out.push_str(tag),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

fn read(path: &Path) -> Result<String, TemplateError> {
    rlf_files::read_text(path, rlf_files::MAX_TEXT_BYTES).map_err(|source| TemplateError::Read {
        path: path.to_owned(),
        source,
    })
}

fn read_json(path: &Path) -> Result<Json, TemplateError> {
    serde_json::from_str(&read(path)?).map_err(|error| TemplateError::NoTemplate {
        path: path.to_owned(),
        message: format!("not JSON ({error})"),
    })
}

fn special_tokens(config: &Json) -> Vec<(String, String)> {
    ["bos_token", "eos_token", "pad_token", "unk_token"]
        .into_iter()
        .filter_map(|name| {
            let token = config.get(name)?;
            let token = token.as_str().or_else(|| token.get("content")?.as_str())?;
            Some((name.to_owned(), token.to_owned()))
        })
        .collect()
}
