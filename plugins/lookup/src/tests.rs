use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::testing::{self, text};
use rlf_plugin::{Error, ToolPlugin, error_message};

use crate::Plugin;

const COUNTRIES: &str = "\
country,capital,area,neighbours
France,Paris,551695,\"Belgium, Spain\"
Spain,Madrid,505990,\"France, Portugal\"
\"Bosnia and Herzegovina\",Sarajevo,51197,
";

fn with(table: &str, config: Value) -> Result<(), Error> {
    testing::bind("table", "table", table);
    testing::init::<Plugin>(config)
}

fn ask(entity: &str, column: &str) -> (String, bool) {
    let found =
        testing::call::<Plugin>("lookup", json!({ "entity": entity, "column": column })).unwrap();
    (text(&found), found.failed)
}

fn refused(table: &str, config: Value) -> String {
    error_message(&with(table, config).unwrap_err()).to_owned()
}

#[test]
fn a_fact_is_found_by_entity_and_column() {
    with(COUNTRIES, json!({})).unwrap();
    assert_eq!(ask("France", "capital"), ("Paris".into(), false));
    assert_eq!(
        ask("Spain", "neighbours"),
        ("France, Portugal".into(), false)
    );
    assert_eq!(
        ask("bosnia  and HERZEGOVINA", "area"),
        ("51197".into(), false)
    );
}

#[test]
fn the_columns_stand_in_the_schema() {
    with(COUNTRIES, json!({})).unwrap();
    let definition = &Plugin::list_tools()[0];
    assert_eq!(definition.name, "lookup");
    assert_eq!(
        definition.input_schema,
        concat!(
            r#"{"type":"object","properties":{"#,
            r#""entity":{"type":"string","description":"Name of what the fact is about"},"#,
            r#""column":{"type":"string","description":"Which fact","enum":["capital","area","neighbours"]}},"#,
            r#""required":["entity","column"]}"#,
        )
    );
}

#[test]
fn a_small_prompt_gets_a_short_definition_under_other_names() {
    let config = json!({
        "name": "fact", "description": "A fact.", "key_argument": "of", "column_argument": "get",
        "schema": "short", "columns": ["area", "capital"], "show": "{column} of {key}: {value}",
    });
    with(COUNTRIES, config).unwrap();
    let definition = &Plugin::list_tools()[0];
    assert_eq!(
        (definition.name.as_str(), definition.description.as_str()),
        ("fact", "A fact.")
    );
    assert_eq!(
        definition.input_schema,
        r#"{"type":"object","properties":{"of":{"type":"string"},"get":{"enum":["area","capital"]}},"required":["of","get"]}"#
    );
    let found = testing::call::<Plugin>("fact", json!({ "of": "spain", "get": "area" })).unwrap();
    assert_eq!(text(&found), "area of Spain: 505990");
}

#[test]
fn what_is_unknown_is_a_failure_that_names_what_is_near() {
    with(COUNTRIES, json!({})).unwrap();
    assert_eq!(
        ask("Frnace", "capital"),
        ("nothing known of Frnace; did you mean France?".into(), true)
    );
    assert_eq!(
        ask("Atlantis", "capital"),
        ("nothing known of Atlantis".into(), true)
    );
    assert_eq!(
        ask("France", "king"),
        (
            "no column king; there are capital, area, neighbours".into(),
            true
        )
    );
    assert_eq!(
        ask("Bosnia and Herzegovina", "neighbours"),
        ("no neighbours known of Bosnia and Herzegovina".into(), true)
    );
    with(COUNTRIES, json!({ "suggestions": 0 })).unwrap();
    assert_eq!(
        ask("Frnace", "capital"),
        ("nothing known of Frnace".into(), true)
    );
}

#[test]
fn json_lines_and_arrays_are_tables_too_and_several_files_are_one() {
    let lines = "{\"name\": \"A\", \"size\": 1.50, \"tags\": [\"x\", \"y\"]}\n\n{\"name\": \"B\", \"old\": true}\n";
    testing::bind("table", "1.jsonl", lines);
    testing::bind(
        "table",
        "2.json",
        r#"[{"name": "C", "size": null, "old": false}]"#,
    );
    testing::init::<Plugin>(json!({})).unwrap();
    assert_eq!(ask("A", "size").0, "1.5");
    assert_eq!(ask("A", "tags").0, "x, y");
    assert_eq!(ask("B", "old").0, "yes");
    assert_eq!(ask("C", "old").0, "no");
    assert_eq!(ask("C", "size"), ("no size known of C".into(), true));
}

#[test]
fn a_table_that_cannot_be_used_says_why_and_where() {
    assert_eq!(refused("a,b\n", json!({})), "the table has no rows");
    assert_eq!(
        refused("a\nx\n", json!({})),
        "the table has no column beside its key `a`"
    );
    assert_eq!(
        refused("a,b\nx,1\n,2\n", json!({})),
        "row 2 has nothing in the key column `a`"
    );
    assert_eq!(
        refused("a,b\nx,1\n", json!({ "key": "c" })),
        "configuration: the table has no column `c`; it has a, b"
    );
    assert!(refused("a,b\nx,1\nX,2\n", json!({})).starts_with("two rows are about `X`"));
    with("a,b\nx,1\nX,2\n", json!({ "ignore_case": false })).unwrap();
    assert_eq!(ask("X", "b").0, "2");
    assert!(refused("a,b\nx,1,2\n", json!({})).starts_with("data `table`, file table, line 2"));
    assert!(
        refused("{\"a\": 1}\n{broken", json!({})).starts_with("data `table`, file table, line 2")
    );
    assert!(refused(COUNTRIES, json!({ "colums": [] })).contains("unknown field `colums`"));
    assert!(
        refused(COUNTRIES, json!({ "name": "with space" }))
            .contains("`with space` cannot be the name")
    );
}

#[test]
fn a_hundred_thousand_rows_are_found_each() {
    use std::fmt::Write;

    let mut table = "name,value\n".to_owned();
    for number in 0..100_000_u32 {
        writeln!(
            table,
            "Entity {number:x},{}",
            number.wrapping_mul(2_654_435_761)
        )
        .unwrap();
    }
    with(&table, json!({})).unwrap();
    for number in (0..100_000_u32).step_by(997) {
        assert_eq!(
            ask(&format!("entity {number:X}"), "value").0,
            number.wrapping_mul(2_654_435_761).to_string()
        );
    }
    assert_eq!(
        ask("Entity 18g00", "value").0,
        "nothing known of Entity 18g00; did you mean Entity 1800 or Entity 18000 or Entity 18100?"
    );
}
