//! A program as a tool: the model writes code and reads its output.

use std::collections::BTreeSet;
use std::sync::Arc;

use rlf_dialogue::message::Content;
use rlf_dialogue::tool::{Ended, Fault, Hints, Observation, ToolDefinition};
use rlf_plugins::outcome::{CallEnd, invalid_arguments};
use rlf_plugins::plugin::{Plugin, ToolRequest};
use rlf_plugins::safe_text::make_string_safe;
use serde::Deserialize;
use serde_json::json;

use crate::interpreter::{Interpreter, ProgramOptions};
use crate::language::{Language, languages};
use crate::program::{Program, ProgramError, ProgramOutcome, ProgramReport};

/// The definitions that models read of the tools that run programs, one for each language.
pub(crate) fn definitions(plugin: &Plugin) -> Vec<ToolDefinition> {
    let named = languages(plugin).iter();
    named.map(|language| definition(plugin, language)).collect()
}

fn definition(plugin: &Plugin, language: &Language) -> ToolDefinition {
    let name = capitalised(&language.id);
    let packages = &plugin.manifest().packages;
    let importable = if packages.is_empty() {
        String::new()
    } else {
        format!(" It can import {}.", packages.join(", "))
    };
    let tools = &plugin.grants().programs.tools;
    let callable = if tools.is_empty() {
        String::new()
    } else {
        format!(
            " `from tools import {}` gives it these tools as functions.",
            function_names(tools).join(", ")
        )
    };
    ToolDefinition {
        name: tool_name(plugin, language).to_owned(),
        description: format!(
            "Runs a {name} program and returns what it prints.{importable}{callable} Each call starts afresh, without files, \
             network or what earlier calls defined; print what you want to see."
        ),
        input_schema: json!({
            "type": "object",
            "properties": {
                "code": { "type": "string", "description": format!("A complete {name} program.") },
            },
            "required": ["code"],
            "additionalProperties": false,
        }),
        output_schema: None,
        // The tools that it calls may have effects.
        hints: Hints {
            read_only: tools.is_empty(),
            idempotent: tools.is_empty(),
            open_world: !tools.is_empty(),
            ..Hints::default()
        },
        extra: Vec::new(),
    }
}

/// The names under which Python programs import tools: `-` becomes `_`.
fn function_names(tools: &[String]) -> Vec<String> {
    tools.iter().map(|tool| tool.replace('-', "_")).collect()
}

/// Refuses tools that Python programs cannot import by their names.
pub(crate) fn check_function_names(tools: &[String]) -> Result<(), String> {
    /// Keywords of Python, and the names that the module has itself.
    const RESERVED: [&str; 37] = [
        "False",
        "None",
        "True",
        "and",
        "as",
        "assert",
        "async",
        "await",
        "break",
        "class",
        "continue",
        "def",
        "del",
        "elif",
        "else",
        "except",
        "finally",
        "for",
        "from",
        "global",
        "if",
        "import",
        "in",
        "is",
        "lambda",
        "nonlocal",
        "not",
        "or",
        "pass",
        "raise",
        "return",
        "try",
        "while",
        "with",
        "yield",
        "ToolError",
        "__all__",
    ];
    let mut seen = BTreeSet::new();
    for name in function_names(tools) {
        if RESERVED.contains(&name.as_str())
            || name.starts_with(|first: char| first.is_ascii_digit())
        {
            return Err(format!("no function in Python can be called `{name}`"));
        }
        if !seen.insert(name.clone()) {
            return Err(format!("two tools would be the function `{name}`"));
        }
    }
    Ok(())
}

/// The name of the tool that runs a language: the language's. An interpreter with packages of its own may stand beside one
/// without, so its tool has the plugin's name.
fn tool_name<'a>(plugin: &'a Plugin, language: &'a Language) -> &'a str {
    if plugin.manifest().packages.is_empty() {
        &language.id
    } else {
        plugin.name()
    }
}

fn capitalised(id: &str) -> String {
    match id {
        "javascript" => "JavaScript".to_owned(),
        id => id[..1].to_uppercase() + &id[1..],
    }
}

#[derive(Deserialize)]
struct Arguments {
    code: String,
}

/// Answers a call of the tool that runs programs.
pub(crate) async fn call(plugin: &Arc<Plugin>, request: ToolRequest) -> CallEnd {
    let mut languages = languages(plugin).iter();
    let Some(language) = languages.find(|id| tool_name(plugin, id) == request.name) else {
        return CallEnd::by_plugin(format!("it runs no {} any more", request.name));
    };
    let arguments: Arguments = match serde_json::from_str(&request.arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            return CallEnd::by_model(
                Ended::InvalidArguments,
                invalid_arguments(&error.to_string()),
            );
        }
    };
    let program = Program {
        code: arguments.code,
        seed: request.context.seed,
        ..Program::default()
    };
    match run(&Interpreter::pinned_to(plugin, language), program, &request).await {
        Ok(report) => end_from_report(&report),
        Err(end) => end,
    }
}

/// Runs a program for a call. If it could not run, the error is the end of the call.
pub(crate) async fn run(
    interpreter: &Interpreter,
    program: Program,
    request: &ToolRequest,
) -> Result<ProgramReport, CallEnd> {
    let spec = ProgramOptions {
        label: request.context.call_id.clone(),
        deadline: Some(request.deadline),
        nesting: request.nesting.clone(),
        ..ProgramOptions::default()
    };
    interpreter.run(program, spec).await.map_err(|error| {
        let text = error.to_string();
        match error {
            ProgramError::Unavailable(_) => CallEnd::by_infrastructure(Ended::Unavailable, text),
            ProgramError::Broken(_) => CallEnd::by_plugin(text),
            ProgramError::InvalidArguments(_)
            | ProgramError::NotFound(_)
            | ProgramError::Exhausted(_) => CallEnd::by_model(
                Ended::InvalidArguments,
                invalid_arguments(&make_string_safe(text)),
            ),
        }
    })
}

/// The end of a call that ran a program. The model reads its output and its errors.
fn end_from_report(report: &ProgramReport) -> CallEnd {
    let stopped = report.stopped.as_ref().map(CallEnd::from_stopped);
    if let Some(end) = stopped
        .as_ref()
        .filter(|end| end.fault == Fault::Infrastructure || end.fault == Fault::Nobody)
    {
        return end.clone();
    }
    let mut text = report.stdout.captured().text;
    let errors = report.stderr.captured().text;
    for part in [errors.as_str()]
        .into_iter()
        .filter(|part| !part.is_empty())
    {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(part);
    }
    let said = match (&stopped, &report.outcome) {
        (Some(end), _) => Some(stop_message(end)),
        // After an exception, the output already says so.
        (None, Some(ProgramOutcome::Exited(code))) if *code != 0 && !text.is_empty() => {
            Some(format!("(the program left with code {code})"))
        }
        (None, _) => None,
    };
    if let Some(said) = said {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&said);
    }
    if text.is_empty() {
        text = match report.exit_code() {
            Some(0) => "(the program printed nothing)".to_owned(),
            code => format!(
                "(the program printed nothing and left with code {})",
                code.unwrap_or(1)
            ),
        };
    }
    let ended = stopped.as_ref().map_or(report.ended(), |end| end.ended);
    CallEnd {
        ended,
        // If a program breaks its interpreter, the author of the program is responsible.
        fault: Fault::of_answer(ended != Ended::Ok),
        observation: Some(Observation {
            content: vec![Content::Text(text.trim_end_matches('\n').to_owned())],
            failed: ended != Ended::Ok,
            metrics: Vec::new(),
            extra: Vec::new(),
        }),
        detail: report
            .stopped
            .as_ref()
            .map(|stopped| stopped.reason.clone()),
    }
}

/// The reason why a program was stopped, in the words used for calls of tools.
fn stop_message(end: &CallEnd) -> String {
    match &end.observation {
        _ if end.ended == Ended::Trap => {
            "error: the program broke the interpreter (its recursion may be too deep)".to_owned()
        }
        Some(observation) => rlf_dialogue::message::plain_text(&observation.content)
            .replace("the tool", "the program")
            .replace("the call", "the program"),
        None => "error: the program was stopped".to_owned(),
    }
}
