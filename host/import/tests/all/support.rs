//! Fixtures of several tests: files of rows, rows of each format, and Qwen3's dialogue.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use rlf_dialogue::{ChatTemplate, Dialogue, DialogueConfig, Task, Tokenizer};
use rlf_import::{Demonstration, ImportError, Imported, Options, read};
use serde_json::{Value, json};

pub(crate) fn import(rows: &[Value], options: &Options) -> Result<Vec<Imported>, ImportError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    std::fs::write(&path, lines.join("\n")).unwrap();
    read(&path, options)
}

pub(crate) fn task(row: &Value, options: &Options) -> Task {
    match import(std::slice::from_ref(row), options)
        .unwrap_or_else(|error| panic!("{error}"))
        .remove(0)
    {
        Imported::Task(task) => task,
        Imported::Demonstration(_) => panic!("a task was expected"),
    }
}

pub(crate) fn demonstration(row: &Value, options: &Options) -> Demonstration {
    match import(std::slice::from_ref(row), options)
        .unwrap_or_else(|error| panic!("{error}"))
        .remove(0)
    {
        Imported::Demonstration(demonstration) => demonstration,
        Imported::Task(_) => panic!("a demonstration was expected"),
    }
}

/// The error message for one row, without the file's name.
pub(crate) fn complaint(row: &Value, options: &Options) -> String {
    let error = import(std::slice::from_ref(row), options)
        .expect_err("an error was expected")
        .to_string();
    let (_, said) = error.split_once("rows.jsonl:").expect("the file is named");
    said.to_owned()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../dialogue/tests/fixtures")
        .join(name)
}

static TOKENIZER: LazyLock<Arc<Tokenizer>> =
    LazyLock::new(|| Arc::new(Tokenizer::load(&fixture("tokenizer.json")).unwrap()));

fn dialogue(template: &str, config: DialogueConfig) -> Arc<Dialogue> {
    let template = ChatTemplate::load(&fixture(template)).unwrap();
    Arc::new(Dialogue::new(Arc::clone(&TOKENIZER), template, config, &[]).unwrap())
}

pub(crate) fn qwen3(config: DialogueConfig) -> Arc<Dialogue> {
    dialogue("qwen3.jinja", config)
}

pub(crate) fn qwq(config: DialogueConfig) -> Arc<Dialogue> {
    dialogue("qwq.jinja", config)
}

/// `lookup` and `add`, in the form of OpenAI's API.
pub(crate) fn tools() -> Value {
    json!([
        {"type": "function", "function": {"name": "lookup", "description": "Looks up.", "parameters":
            {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}}},
        {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters":
            {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}}},
    ])
}

pub(crate) fn ftrl() -> Value {
    json!({
        "messages": [{"role": "user", "content": "How high is the hill by the lake?"}],
        "tools": tools().to_string(),
        "codes": json!({"lookup": "def lookup(key):\n    return 1", "add": "def add(a, b):\n    return a + b"}).to_string(),
        "unsolved_set": json!({"lookup": ["the hill", "1,000"], "add": ["7"]}).to_string(),
        "answer": "1000", "data_source": "self/multi_hop", "split": "train", "solve_rate": 0.0,
    })
}

pub(crate) fn envfactory() -> Value {
    json!({
        "prompt": json!([
            {"role": "user", "content": "Note milk."},
            {"role": "assistant", "content": "<tool_call>\n{\"name\": \"Notes-add\", \"arguments\": {\"text\": \"milk\"}}\n</tool_call>\n"},
            {"role": "user", "content": "<tool_response>\n{\"id\": 1}\n</tool_response>\n"},
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": "Now read it to me."},
        ]).to_string(),
        "data_source": "EnvFactory", "agent_name": "tool_agent", "ability": "tool_use",
        "reward_model": {"style": "rule", "ground_truth": json!([
            {"name": "Notes-list", "arguments": {"limit": 5}, "masked_arguments": ["limit"]},
        ]).to_string()},
        "extra_info": {"mcp_factory_kwargs": {
            "mcp_servers": json!(["Notes"]).to_string(),
            "initial_config": json!({"Notes": {"notes": ["milk"]}}).to_string(),
            "final_config": json!({"Notes": {"notes": ["milk"], "read": 1}}).to_string(),
        }},
    })
}

pub(crate) fn tau() -> Value {
    json!({
        "split": "dev", "i": 3, "user_id": "mei_1", "instruction": "You are Mei. Cancel order #W1.",
        "actions": [{"name": "cancel_pending_order", "kwargs": {"order_id": "#W1"}}],
        "outputs": ["12.5"], "gold_hash": "ab12",
    })
}

pub(crate) fn verl() -> Value {
    json!({
        "data_source": "nq", "ability": "fact-reasoning",
        "prompt": [{"role": "user", "content": "Who wrote Faust?"}],
        "reward_model": {"style": "rule", "ground_truth": {"target": ["Goethe"]}},
        "extra_info": {"split": "test", "index": 7},
    })
}

pub(crate) fn openai() -> Value {
    json!({
        "tools": tools(),
        "messages": [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "What is key one plus key two?"},
            {"role": "assistant", "content": null, "reasoning_content": "I need both.", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": "{\"key\": \"one\"}"}},
                {"id": "c2", "type": "function", "function": {"name": "lookup", "arguments": "{\"key\": \"two\"}"}},
            ]},
            {"role": "tool", "tool_call_id": "c2", "content": "35"},
            {"role": "tool", "tool_call_id": "c1", "content": "7"},
            {"role": "assistant", "content": "Adding.", "tool_calls": [
                {"id": "c3", "type": "function", "function": {"name": "add", "arguments": "{\"a\":7,\"b\":35}"}},
            ]},
            {"role": "tool", "tool_call_id": "c3", "content": [{"type": "text", "text": "42"}]},
            {"role": "assistant", "content": "It is 42."},
            {"role": "user", "content": "And twice that?"},
            {"role": "assistant", "content": "84."},
        ],
    })
}

pub(crate) fn alpaca() -> Value {
    let tools = tools();
    let listed: Vec<String> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(Value::to_string)
        .collect();
    let listed = listed.join("\n");
    let call =
        "<tool_call>\n{\"name\": \"lookup\", \"arguments\": {\"key\": \"one\"}}\n</tool_call>\n";
    json!({
        "instruction": "<tool_response>\n7\n</tool_response>", "input": "",
        "output": "<think>Seven.</think>\n\nIt is 7.",
        "system": format!("Be short.\n\n# Tools\n\nThese:\n<tools>\n{listed}\n</tools>\n\nCall like this:\n<tool_call>\n{{}}\n</tool_call>\n"),
        "history": [["What is key one?", format!("<think>Look.</think>\n\n{call}")]],
    })
}

pub(crate) fn sharegpt() -> Value {
    json!({
        "system": "Be short.", "tools": tools().to_string(),
        "conversations": [
            {"from": "human", "value": "What is key one?"},
            {"from": "function_call", "value": "{\"name\": \"lookup\", \"arguments\": {\"key\": \"one\"}}"},
            {"from": "observation", "value": "7"},
            {"from": "gpt", "value": "It is 7."},
        ],
    })
}
