use rlf_plugin::serde_json::{Value, json};

use crate::config::Extraction;
use crate::extract::{Code, extract};
use crate::row::{Row, Tests};

fn python(row: &Row) -> &crate::row::Python {
    match &row.tests {
        Tests::Python(python) => python,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_row_of_mbpp_is_read_as_it_is() {
    let row = Row::read(&json!({
        "task_id": 2, "text": "Write ..", "code": "def f(x):\r\n  return x",
        "test_setup_code": "root = Node(1)", "test_imports": ["import math"],
        "test_list": ["assert f(1) == 1"], "challenge_test_list": ["assert f(2) == 2"],
    }))
    .unwrap();
    let tests = python(&row);
    assert_eq!(tests.tests, ["assert f(1) == 1", "assert f(2) == 2"]);
    assert_eq!(tests.setup, "import math\nroot = Node(1)");
    assert_eq!(tests.solution, "def f(x):\r\n  return x");
    assert_eq!(row.program("x = 1\n"), "x = 1\n");
}

#[test]
fn a_row_of_humaneval_calls_its_check_and_a_completion_goes_on_from_the_prompt() {
    let row = Row::read(&json!({
        "task_id": "HumanEval/0", "entry_point": "f",
        "prompt": "import math\n\ndef g(x):\n    return x\n\ndef f(x):\n    \"\"\"Doc\"\"\"\n",
        "test": "def check(candidate):\n    assert candidate(1) == 1\n",
    }))
    .unwrap();
    assert_eq!(
        python(&row).tests,
        ["def check(candidate):\n    assert candidate(1) == 1\n\n\ncheck(f)\n"]
    );
    assert_eq!(
        python(&row).prelude,
        "import math\n\ndef g(x):\n    return x\n\n"
    );
    let program = row.program("    return g(x)\n");
    assert!(
        program.ends_with("def f(x):\n    \"\"\"Doc\"\"\"\n    return g(x)\n"),
        "{program}"
    );
    let program = row.program("def f(x):\n    return g(x)\n");
    assert_eq!(
        program,
        "import math\n\ndef g(x):\n    return x\n\ndef f(x):\n    return g(x)\n"
    );
}

#[test]
fn pairs_are_streams_or_the_calls_of_a_function() {
    let row =
        Row::read(&json!({ "inputs": ["1\n2", ["3", "4"]], "outputs": ["3", "7\n"] })).unwrap();
    let Tests::Streams(streams) = &row.tests else {
        panic!("{row:?}")
    };
    assert_eq!((&*streams[1].input, &*streams[1].output), ("3\n4", "7\n"));
    for (inputs, outputs) in [
        (json!([[1, [2]]]), json!([[3]])),
        (json!(["1\n[2]"]), json!(["[3]"])),
    ] {
        let row =
            Row::read(&json!({ "fn_name": "add", "inputs": inputs, "outputs": outputs })).unwrap();
        let Tests::Calls { function, cases } = &row.tests else {
            panic!("{row:?}")
        };
        assert_eq!(function, "add");
        assert_eq!(
            (&cases[0].arguments, &cases[0].output),
            (&vec![json!(1), json!([2])], &json!([3]))
        );
    }
}

#[test]
fn text_that_is_a_row_and_text_that_is_tests_are_told_apart() {
    let text = json!(r#"{"inputs": ["1"], "outputs": ["1"]}"#);
    assert!(matches!(Row::read(&text).unwrap().tests, Tests::Streams(_)));
    let text = json!("assert f(1) == 1\nassert f(2) == 2");
    assert_eq!(python(&Row::read(&text).unwrap()).tests.len(), 1);
    let list = json!(["assert f(1) == 1", "assert f(2) == 2"]);
    assert_eq!(python(&Row::read(&list).unwrap()).tests.len(), 2);
    let wrapped = json!({ "style": "rule", "ground_truth": r#"["assert f(1) == 1"]"# });
    assert_eq!(python(&Row::read(&wrapped).unwrap()).tests.len(), 1);
    let own = json!({ "tests": [{ "input": "1", "output": "2" }] });
    assert!(matches!(Row::read(&own).unwrap().tests, Tests::Streams(_)));
}

#[test]
fn a_bad_row_says_what_is_wrong_with_it() {
    for (row, said) in [
        (json!(3), "the reference is 3"),
        (json!({ "answer": 1 }), "[\"answer\"]"),
        (json!({ "test_list": [] }), "no tests"),
        (json!({ "test_list": [1] }), "test_list[0]"),
        (
            json!({ "inputs": ["1"], "outputs": [] }),
            "1 inputs and 0 outputs",
        ),
        (json!({ "inputs": ["1"] }), "`outputs` is no list"),
        (
            json!({ "inputs": [1], "outputs": ["1"] }),
            "`inputs[0]` is no text",
        ),
        (
            json!({ "fn_name": "f", "inputs": ["{"], "outputs": ["1"] }),
            "`inputs[0]` is not JSON",
        ),
        (
            json!({ "fn_name": "f()", "inputs": [[]], "outputs": [1] }),
            "no name of a function",
        ),
        (json!({ "tests": [{ "input": "1" }] }), "tests[0].output"),
    ] as [(Value, &str); 10]
    {
        let error = Row::read(&row).unwrap_err();
        assert!(error.contains(said), "{row}: {error}");
    }
}

#[test]
fn code_is_taken_from_where_the_operator_says() {
    let answer = "First:\n```python\na = 1\n```\nThen\n```\nb = 2\n```\nand\n  ~~~py\n  c = 3\n  ~~~\n```json\n{}\n```";
    let fenced = |source: &str| {
        Some(Code {
            source: source.to_owned(),
            fenced: true,
        })
    };
    assert_eq!(extract(answer, Extraction::LastBlock), fenced("c = 3\n"));
    assert_eq!(extract(answer, Extraction::FirstBlock), fenced("a = 1\n"));
    assert_eq!(
        extract(answer, Extraction::AllBlocks),
        fenced("a = 1\n\nc = 3\n")
    );
    assert_eq!(
        extract("```\nb = 2\n", Extraction::LastBlock),
        fenced("b = 2\n")
    );
    assert_eq!(
        extract("````python\nx = '''\n```\n'''\n````", Extraction::LastBlock),
        fenced("x = '''\n```\n'''\n")
    );
    let whole = extract("\n    return 1\n\n", Extraction::LastBlock).unwrap();
    assert_eq!((&*whole.source, whole.fenced), ("    return 1\n", false));
    for nothing in ["", " \n", "```python\n```"] {
        assert_eq!(extract(nothing, Extraction::LastBlock), None, "{nothing:?}");
    }
}
