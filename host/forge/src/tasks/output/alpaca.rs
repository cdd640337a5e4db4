//! Alpaca's rows: each turn of the model is the output of one row, and everything before it is its history. Mistakes are
//! in the history only.

use serde_json::{Value, json};

use super::Naming;
use super::conversation::tools;
use super::shown_names::ShownNames;
use crate::tasks::record::{Arguments, Mistake, TaskRecord};
use crate::tasks::suite::Suite;

/// The rows of a task.
pub(super) fn rows(suite: &Suite, task: &TaskRecord, naming: &Naming) -> Vec<Value> {
    let names = ShownNames::new(task, naming);
    let system = system(suite, task, &names);
    let mut history: Vec<(String, String)> = Vec::new();
    let mut rows = Vec::new();
    for turn in &task.turns {
        let mut said = turn.query.clone();
        let mut steps = Vec::new();
        for call in &turn.calls {
            let tool = names.shown(&call.tool);
            if let Some(Mistake { arguments, refusal }) = &call.mistake {
                steps.push((called(tool, arguments), heard(refusal), false));
            }
            let result = heard(&call.result.to_string());
            steps.push((called(tool, &call.arguments), result, true));
        }
        steps.push((turn.answer.clone(), String::new(), true));
        for (output, heard, is_taught) in steps {
            if is_taught {
                rows.push(json!({
                    "instruction": said, "input": "", "output": output, "system": system, "history": history,
                }));
            }
            history.push((std::mem::replace(&mut said, heard), output));
        }
    }
    rows
}

fn called(tool: &str, arguments: &Arguments) -> String {
    let written = json!({ "name": tool, "arguments": arguments });
    format!("<tool_call>\n{written}\n</tool_call>")
}

fn heard(result: &str) -> String {
    format!("<tool_response>\n{result}\n</tool_response>")
}

/// The system message that lists the tools, as Qwen's template writes it.
fn system(suite: &Suite, task: &TaskRecord, names: &ShownNames<'_>) -> String {
    let listed: Vec<String> = tools(suite, task, names)
        .iter()
        .map(|tool| {
            let function = json!({
                "name": tool.name, "description": tool.description, "parameters": tool.input_schema,
            });
            json!({ "type": "function", "function": function }).to_string()
        })
        .collect();
    format!(
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function \
         signatures within <tools></tools> XML tags:\n<tools>\n{}\n</tools>\n\nFor each function call, return a json object \
         with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{{\"name\": \
         <function-name>, \"arguments\": <args-json-object>}}\n</tool_call>",
        listed.join("\n")
    )
}
