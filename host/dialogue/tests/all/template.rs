//! Chat templates, byte for byte as transformers renders them.

use std::sync::Arc;

use crate::data::data;
use crate::support::*;
use rlf_dialogue::*;
use serde_json::{Value, json};

/// A fixture's message in our own types.
fn message(json: &Value) -> Message {
    let calls = json
        .get("tool_calls")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    Message {
        reasoning_content: json["reasoning_content"].as_str().map(str::to_owned),
        tool_calls: calls
            .iter()
            .map(|call| ToolCall {
                call_id: String::new(),
                name: call["function"]["name"].as_str().unwrap().into(),
                arguments: call["function"]["arguments"].clone(),
            })
            .collect(),
        ..Message::text(
            serde_json::from_value(json["role"].clone()).unwrap(),
            json["content"].as_str().unwrap(),
        )
    }
}

fn tool_definition(json: &Value) -> ToolDefinition {
    let function = &json["function"];
    ToolDefinition {
        name: function["name"].as_str().unwrap().into(),
        description: function["description"].as_str().unwrap().into(),
        input_schema: function["parameters"].clone(),
        output_schema: None,
        hints: tool::Hints::default(),
        extra: Vec::new(),
    }
}

#[test]
fn renderings_equal_those_of_transformers() {
    let expected = expected();
    let renders = expected["renders"].as_array().unwrap();
    assert_eq!(renders.len(), 13 * 2 * 4 + 13 * 2 * 2);
    for case in renders {
        let template = ChatTemplate::load(&fixture(case["template"].as_str().unwrap())).unwrap();
        let messages = &expected["conversations"][case["name"].as_str().unwrap()];
        let tools = case["tools"]
            .as_bool()
            .unwrap()
            .then_some(&expected["tools"]);
        let settings = case["settings"].as_object().unwrap();
        let text = template.render_json(messages, tools, settings).unwrap();
        assert_eq!(text, case["text"].as_str().unwrap(), "{case}");
        let ids: Vec<u32> = serde_json::from_value(case["ids"].clone()).unwrap();
        assert_eq!(QWEN.encode_trusted(&text), ids, "{case}");
    }
}

/// Text without control tokens is encoded across the borders between template and message, as transformers does: `.`
/// and the template's newline are one token, for example.
#[test]
fn prompts_of_episodes_equal_those_of_transformers() {
    let expected = expected();
    let mut compared = 0;
    for case in expected["renders"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let settings = &case["settings"];
        // A prompt ends with the generation prompt, and tags in messages are data, not structure.
        let tags = ["a user who writes tags", "reasoning in the content"].contains(&name);
        if settings["add_generation_prompt"].is_null() || tags {
            continue;
        }
        let template = ChatTemplate::load(&fixture(case["template"].as_str().unwrap())).unwrap();
        let enable_thinking = settings["enable_thinking"].as_bool().unwrap_or(true);
        let config = DialogueConfig {
            enable_thinking,
            ..DialogueConfig::default()
        };
        let dialogue = Dialogue::new(Arc::clone(&QWEN), template, config, &[]).unwrap();
        let prompt = expected["conversations"][name].as_array().unwrap();
        let task = Task {
            prompt: prompt.iter().map(message).collect(),
            ..ask()
        };
        let tools = expected["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(tool_definition);
        let tools = if case["tools"] == true {
            tools.collect()
        } else {
            Vec::new()
        };
        let episode = Episode::start(&Arc::new(dialogue), "r".into(), &task, tools).unwrap();
        let ids: Vec<u32> = serde_json::from_value(case["ids"].clone()).unwrap();
        assert_eq!(
            QWEN.decode(&episode.sequence_ids()),
            case["text"].as_str().unwrap()
        );
        assert_eq!(episode.sequence_ids(), ids, "{name} {settings}");
        compared += 1;
    }
    assert_eq!(compared, 11 * 2 * 3 + 11 * 2);
}

#[test]
fn the_shipped_copies_are_those_of_the_models() {
    for name in ["qwen3.jinja", "qwq.jinja"] {
        if let Some(original) = data(&format!("chat-templates/{name}")) {
            let original = std::fs::read(original).unwrap();
            assert!(original == std::fs::read(fixture(name)).unwrap(), "{name}");
        }
    }
}

#[test]
fn the_small_template_spends_few_tokens() {
    let messages = [
        Message::text(Role::User, "Capital?"),
        Message {
            tool_calls: vec![ToolCall {
                call_id: String::new(),
                name: "lookup".into(),
                arguments: json!({"x": 1, "y": "é"}),
            }],
            ..Message::text(Role::Assistant, "")
        },
        Message::text(Role::Tool, "7"),
    ];
    let text = ChatTemplate::small().render(&RenderInput {
        messages: &messages,
        tools: &tools(),
        enable_thinking: Some(false),
        add_generation_prompt: true,
    });
    assert_eq!(
        text.unwrap(),
        "<|system|>lookup(x)\nadd(x)<|end|><|user|>Capital?<|end|><|assistant|>\
         <tool_call>{\"name\":\"lookup\",\"arguments\":{\"x\":1,\"y\":\"é\"}}</tool_call><|end|>\
         <tool_response>7</tool_response><|assistant|>"
    );
    let dialogue = small(DialogueConfig::default());
    assert!(dialogue.prefix_report().kept(prefix::CALL).unwrap());
    assert_eq!(dialogue.protocol(), Protocol::Hermes);
}

fn render(source: &str) -> Result<String, TemplateError> {
    let messages = [Message::text(Role::User, "hi")];
    ChatTemplate::from_source(source, "test.jinja")?.render(&RenderInput {
        messages: &messages,
        tools: &[],
        enable_thinking: None,
        add_generation_prompt: false,
    })
}

#[test]
fn what_transformers_adds_to_jinja_is_there() {
    for (source, expected) in [
        ("{{ strftime_now('%d %b %Y') }}", "01 Jan 2025"),
        (
            "{% generation %}{{ messages[0].content }}{%- endgeneration -%} x",
            "hix",
        ),
        (
            "{% for m in [1, 2, 3] %}{% if m == 2 %}{% break %}{% endif %}{{ m }}{% endfor %}",
            "1",
        ),
        (
            "{{ {'a': [1.0, 1e16, none, true]} }}",
            "{'a': [1.0, 1e+16, None, True]}",
        ),
        (
            "{{ {'a': '<é'} | tojson(indent=2) }}",
            "{\n  \"a\": \"<é\"\n}",
        ),
        (
            "{{ 'a-b'.split('-')[-1] + 'xx'.strip('x') + messages[::-1][0].role }}",
            "buser",
        ),
    ] {
        assert_eq!(render(source).unwrap(), expected, "{source}");
    }
}

#[test]
fn templates_that_fail_say_where_and_why() {
    let error = render("\n{{ raise_exception('only two roles') }}")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("test.jinja") && error.contains("line 2"),
        "{error}"
    );
    assert!(error.contains("only two roles"), "{error}");
    let error = render("{% if %}").unwrap_err().to_string();
    assert!(error.contains("does not parse"), "{error}");
    let endless = "{% for a in range(100000) %}".repeat(3) + &"{% endfor %}".repeat(3);
    let error = render(&endless).unwrap_err().to_string();
    assert!(error.contains("ran out of fuel"), "{error}");
}

#[test]
fn a_tokenizer_config_gives_its_template_and_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("tokenizer_config.json");
    let write = |value: Value| std::fs::write(&config, value.to_string()).unwrap();
    write(json!({
        "chat_template": [{"name": "default", "template": "{{ bos_token }}{{ eos_token }}"}],
        "bos_token": {"content": "<s>"}, "eos_token": "</s>",
    }));
    let template = ChatTemplate::load(folder.path()).unwrap();
    let text = template.render_json(&json!([]), None, &serde_json::Map::new());
    assert_eq!(text.unwrap(), "<s></s>");
    write(json!({"eos_token": "</s>"}));
    let error = ChatTemplate::load(folder.path()).unwrap_err().to_string();
    assert!(
        error.contains("no `chat_template`") && error.contains(".jinja"),
        "{error}"
    );
}

/// Facts about jinja2's behaviour that the project relies on.
#[test]
fn the_prefixes_that_qwen3_keeps_and_changes_are_known_at_load() {
    let report = qwen3(DialogueConfig::default()).prefix_report().clone();
    for (case, kept) in [
        (prefix::REASONING, true),
        (prefix::REASONING_SKIPPED, true),
        (prefix::THINKING_OFF, false),
        (prefix::REASONING_SPACED, false),
        (prefix::NEW_USER_TURN, false),
        (prefix::CALL, true),
        (prefix::CALL_SPACED, false),
    ] {
        assert_eq!(report.kept(case), Some(kept), "{case}");
    }
    assert!(report.to_string().contains("changed  thinking off"));
    assert!(!report.keeps_all());
}

#[test]
fn a_template_and_a_tokenizer_that_do_not_fit_are_refused() {
    let config = DialogueConfig::default;
    let qwen_template = ChatTemplate::load(&fixture("qwen3.jinja")).unwrap();
    let error = Dialogue::new(Arc::clone(&SMALL), qwen_template, config(), &[]).unwrap_err();
    assert!(
        error.to_string().contains("must come from the same model"),
        "{error}"
    );
    let error = Dialogue::new(
        Arc::clone(&SMALL),
        ChatTemplate::small(),
        config(),
        &[99_999],
    );
    assert!(error.unwrap_err().to_string().contains("stop id 99999"));
    let no_turns = DialogueConfig {
        max_turns: 0,
        ..config()
    };
    let error = Dialogue::new(Arc::clone(&SMALL), ChatTemplate::small(), no_turns, &[]);
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("dialogue.max_turns")
    );
    let plain = "{% for m in messages %}<|user|>{{ m.content }}<|end|>{% endfor %}";
    let template = ChatTemplate::from_source(plain, "plain").unwrap();
    let error = Dialogue::new(Arc::clone(&SMALL), template, config(), &[]).unwrap_err();
    assert!(error.to_string().contains("dialogue.protocol"), "{error}");
}
