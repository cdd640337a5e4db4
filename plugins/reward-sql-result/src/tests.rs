use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{Grading, RewardPlugin, error_message, testing};

use crate::{Plugin, answer, sql};

const SCHEMA: &str = "
    CREATE TABLE city (id INTEGER PRIMARY KEY, name TEXT, country TEXT, people INTEGER, area REAL);
    INSERT INTO city VALUES (1, 'Bern', 'CH', 134000, 51.6), (2, 'Basel', 'CH', 173000, 23.9),
        (3, 'Graz', 'AT', 291000, 127.5), (4, 'Linz', 'AT', NULL, 95.9), (5, 'Bonn', 'DE', 331000, 141.1);
";

/// The terms `match` and `executes`.
fn grade(reference: &str, answer: &str) -> (f64, f64) {
    graded(json!({ "sql": reference, "schema": SCHEMA }), answer).unwrap()
}

fn graded(reference: Value, answer: &str) -> Result<(f64, f64), String> {
    testing::init_reward::<Plugin>(json!({})).unwrap();
    let trajectory = testing::trajectory().answered(answer);
    let score = testing::grade::<Plugin>(&testing::task(reference), trajectory);
    let score = score.map_err(|error| error_message(&error).to_owned())?;
    Ok((score.get("match").unwrap(), score.get("executes").unwrap()))
}

/// The score of a hostile query with a harmless reference.
fn hostile(query: &str) -> (f64, f64) {
    grade("SELECT count(*) FROM city", query)
}

const MATCHES: (f64, f64) = (1.0, 1.0);
const DIFFERS: (f64, f64) = (0.0, 1.0);
const FAILS: (f64, f64) = (0.0, 0.0);

#[test]
fn another_query_with_the_same_result_matches() {
    assert_eq!(
        grade(
            "SELECT name FROM city WHERE country = 'CH'",
            "SELECT name AS n FROM city WHERE id < 3 ORDER BY id DESC"
        ),
        MATCHES
    );
    assert_eq!(
        grade(
            "SELECT count(*) FROM city",
            "WITH c AS (SELECT 1 FROM city) SELECT count(*) FROM c;"
        ),
        MATCHES
    );
}

#[test]
fn another_result_does_not_match() {
    for query in [
        "SELECT name FROM city",
        "SELECT name, id FROM city WHERE country = 'CH'",
        "SELECT name FROM city WHERE country = 'AT'",
        "SELECT name FROM city WHERE 0",
        "SELECT lower(name) FROM city WHERE country = 'CH'",
    ] {
        assert_eq!(
            grade("SELECT name FROM city WHERE country = 'CH'", query),
            DIFFERS,
            "{query}"
        );
    }
}

#[test]
fn rows_count_as_often_as_they_come() {
    let reference = "SELECT country FROM city";
    assert_eq!(
        grade(reference, "SELECT DISTINCT country FROM city"),
        DIFFERS
    );
    // The same number of rows, and of different rows.
    assert_eq!(
        grade(
            reference,
            "SELECT 'CH' UNION ALL SELECT 'AT' UNION ALL SELECT 'AT' UNION ALL SELECT 'DE' UNION ALL SELECT 'DE'"
        ),
        DIFFERS
    );
    assert_eq!(
        grade(reference, "SELECT country FROM city ORDER BY random()"),
        MATCHES
    );
}

#[test]
fn order_counts_where_the_reference_orders() {
    let ordered = "SELECT name FROM city ORDER BY area";
    assert_eq!(
        grade(ordered, "SELECT name FROM city ORDER BY area ASC"),
        MATCHES
    );
    assert_eq!(
        grade(ordered, "SELECT name FROM city ORDER BY area DESC"),
        DIFFERS
    );
    for inner in [
        "SELECT name FROM (SELECT name FROM city ORDER BY area)",
        "WITH c AS (SELECT name FROM city ORDER BY area) SELECT name FROM c",
        "SELECT name FROM city WHERE 1 -- ORDER BY area",
        "SELECT name FROM city /* ORDER BY area */",
        "SELECT name FROM city WHERE name <> ' ORDER BY '",
    ] {
        assert_eq!(
            grade(inner, "SELECT name FROM city ORDER BY id DESC"),
            MATCHES,
            "{inner}"
        );
    }
}

#[test]
fn what_orders_is_seen_outside_parentheses_only() {
    for ordered in [
        "SELECT a FROM t ORDER BY a",
        "select a from t order\n\tby a limit 1",
        "SELECT a FROM t UNION SELECT b FROM u ORDER /* by what? */ BY 1",
        "WITH c AS (SELECT 1) SELECT * FROM c ORDER BY 1",
        "SELECT ')' FROM t ORDER BY 1",
    ] {
        assert!(sql::orders(ordered), "{ordered}");
    }
    for unordered in [
        "SELECT row_number() OVER (ORDER BY a) FROM t",
        "SELECT group_concat(a ORDER BY a) FROM t",
        "SELECT \"order by\" FROM t",
        "SELECT [order by] FROM `order by`",
        "SELECT 'it''s ORDER BY' FROM t",
        "SELECT border, bystander FROM t",
    ] {
        assert!(!sql::orders(unordered), "{unordered}");
    }
}

#[test]
fn null_is_null_and_nothing_else() {
    assert_eq!(
        grade("SELECT people FROM city WHERE id = 4", "SELECT NULL"),
        MATCHES
    );
    assert_eq!(
        grade("SELECT people FROM city WHERE id = 4", "SELECT 0"),
        DIFFERS
    );
    assert_eq!(
        grade("SELECT people FROM city WHERE id = 4", "SELECT ''"),
        DIFFERS
    );
    // SQLite puts NULL first; without an order it is one of the rows.
    assert_eq!(
        grade(
            "SELECT people FROM city",
            "SELECT people FROM city ORDER BY people DESC"
        ),
        MATCHES
    );
    assert_eq!(
        grade(
            "SELECT people FROM city ORDER BY people",
            "SELECT people FROM city ORDER BY people NULLS LAST"
        ),
        DIFFERS
    );
}

#[test]
fn numbers_are_compared_by_value_and_texts_by_character() {
    assert_eq!(grade("SELECT 1", "SELECT 1.0"), MATCHES);
    assert_eq!(grade("SELECT 1", "SELECT '1'"), DIFFERS);
    assert_eq!(grade("SELECT 0.1 + 0.2", "SELECT 0.3"), MATCHES);
    assert_eq!(grade("SELECT 1000000.0", "SELECT 1000000.5"), MATCHES);
    assert_eq!(grade("SELECT 100.0", "SELECT 100.01"), DIFFERS);
    // Whole numbers have no tolerance.
    assert_eq!(grade("SELECT 1000000000", "SELECT 1000000001"), DIFFERS);
    assert_eq!(grade("SELECT 'Bern'", "SELECT 'Bern '"), DIFFERS);
    assert_eq!(grade("SELECT x'4265726e'", "SELECT 'Bern'"), DIFFERS);
}

#[test]
fn fractions_that_were_sorted_apart_find_their_rows() {
    assert_eq!(
        grade(
            "VALUES (1.0000000001, 'a'), (1.0, 'b')",
            "VALUES (1.0, 'a'), (1.0000000001, 'b')"
        ),
        MATCHES
    );
    assert_eq!(
        grade(
            "VALUES (1.0000000001, 'a'), (1.0, 'b')",
            "VALUES (1.0, 'a'), (1.0000000001, 'a')"
        ),
        DIFFERS
    );
}

#[test]
fn a_query_that_writes_scores_nothing() {
    for query in [
        "DELETE FROM city",
        "INSERT INTO city VALUES (6, 'x', 'y', 1, 1)",
        "INSERT INTO city VALUES (6, 'x', 'y', 1, 1) RETURNING 5",
        "UPDATE city SET name = 'x' RETURNING 5",
        "WITH c AS (SELECT 1) DELETE FROM city RETURNING 5",
        "CREATE TABLE t (a)",
        "CREATE TEMP TABLE t AS SELECT 1",
        "CREATE TEMP VIEW v AS SELECT 5",
        "CREATE TRIGGER t AFTER INSERT ON city BEGIN SELECT 5; END",
        "CREATE TEMP TRIGGER t AFTER INSERT ON city BEGIN SELECT 5; END",
        "SELECT 5 FROM temp.city",
        "DROP TABLE city",
        "ALTER TABLE city RENAME TO town",
        "REINDEX",
        "ANALYZE",
        "VACUUM",
        "VACUUM INTO 'copy.db'",
        "BEGIN",
        "SAVEPOINT s",
    ] {
        assert_eq!(hostile(query), FAILS, "{query}");
    }
}

#[test]
fn nothing_but_the_database_can_be_reached() {
    for query in [
        "ATTACH 'other.db' AS other",
        "ATTACH ':memory:' AS other",
        "DETACH main",
        "PRAGMA query_only = 0",
        "PRAGMA writable_schema = 1",
        "PRAGMA hard_heap_limit = 0",
        "PRAGMA hard_heap_limit = 1",
        "PRAGMA temp_store = file",
        "PRAGMA case_sensitive_like = 1",
        "SELECT hard_heap_limit FROM pragma_hard_heap_limit(1)",
        "PRAGMA table_info(city)",
        "SELECT 5 FROM pragma_table_info('city')",
        "SELECT load_extension('evil')",
        "SELECT writefile('x', 'y')",
        "SELECT readfile('/etc/passwd')",
        "CREATE VIRTUAL TABLE t USING fts5(a)",
        "SELECT fts3_tokenizer('x')",
    ] {
        assert_eq!(hostile(query), FAILS, "{query}");
    }
}

#[test]
fn several_statements_are_refused_however_they_are_hidden() {
    for query in [
        "SELECT 5; SELECT 5",
        "SELECT count(*) FROM city; DELETE FROM city",
        "SELECT count(*) FROM city /* ; */; DELETE FROM city",
        "SELECT count(*) FROM city -- ;\n; DROP TABLE city",
        ";;; SELECT 5; SELECT 5",
        "SELECT count(*) FROM city\0; DELETE FROM city",
        "",
        "-- nothing",
        "/* nothing",
        ";",
        "SELECT ?",
        "SELECT :name",
    ] {
        assert_eq!(hostile(query), FAILS, "{query:?}");
    }
    for query in [
        "SELECT count(*) FROM city; -- that is all; really",
        "SELECT count(*) FROM city;;\n/* ; */ ;",
        "/* first; */ SELECT count(*) -- ; DELETE\n FROM city",
        "SELECT count(*) FROM city WHERE name <> '; DELETE FROM city --'",
        "SELECT count(*) AS \"a;b\" FROM city",
    ] {
        assert_eq!(hostile(query), MATCHES, "{query:?}");
    }
}

#[test]
fn a_query_without_end_is_stopped() {
    for query in [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT max(i) FROM n",
        "SELECT count(*) FROM city a, city b, city c, city d, city e, city f, city g, city h, city i, city j, city k",
    ] {
        assert_eq!(hostile(query), FAILS, "{query}");
    }
}

#[test]
fn a_huge_result_is_cut_off() {
    // It runs until it has returned one row too many.
    assert_eq!(
        hostile("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"),
        DIFFERS
    );
    for query in [
        "SELECT zeroblob(1000000000)",
        "SELECT printf('%.*c', 1000000000, 'x')",
        "SELECT replace(hex(zeroblob(1000000)), '0', 'xxxxxxxxxx')",
        "SELECT group_concat(hex(zeroblob(100000))) FROM city a, city b, city c",
        "SELECT zeroblob(3000000), zeroblob(3000000)",
        "SELECT 'a' LIKE replace(hex(zeroblob(2000)), '0', '%a')",
    ] {
        assert_eq!(hostile(query), FAILS, "{query}");
    }
}

/// A function is one step of SQLite, however long it takes. It is stopped by the size of its input, or ends soon.
#[test]
fn no_single_value_costs_much() {
    for query in [
        "SELECT instr(hex(zeroblob(100000000)), 'x')",
        "SELECT instr(zeroblob(200000), zeroblob(100000) || x'01')",
        "SELECT replace(hex(zeroblob(50000)), hex(zeroblob(20000)) || '1', '')",
        "SELECT trim(hex(zeroblob(100000)), hex(randomblob(50000)) || '0')",
        "SELECT randomblob(100000000)",
        "SELECT length(randomblob(1000000))",
        "SELECT count(*) FROM city WHERE hex(zeroblob(100000)) LIKE '%x'",
        "SELECT 'x' LIKE '%' || hex(zeroblob(200))",
        "SELECT 'x' GLOB '*' || hex(zeroblob(200))",
        "SELECT printf('%.*f', 1000000, 0.1)",
        "SELECT json_patch(json_group_object(a.id, hex(zeroblob(20000))), '{}') FROM city a, city b",
    ] {
        assert_eq!(hostile(query), FAILS, "{query}");
    }
    // The task's own query can make long texts.
    let long = "SELECT group_concat(hex(zeroblob(20000))) FROM city";
    assert_eq!(grade(long, long), MATCHES);
    assert_eq!(
        grade(
            long,
            "SELECT group_concat(hex(zeroblob(20000)), ' ') FROM city"
        ),
        DIFFERS
    );
}

#[test]
fn sorting_and_grouping_end_where_there_is_no_more_memory() {
    for query in [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         SELECT count(*) FROM (SELECT DISTINCT randomblob(20000) FROM n)",
        "WITH RECURSIVE n(i) AS (SELECT randomblob(20000) UNION SELECT randomblob(20000) FROM n) SELECT count(*) FROM n",
    ] {
        assert_eq!(hostile(query), FAILS, "{query}");
    }
}

/// A recursion in SQLite that overflows the sandbox's stack would end the reward itself.
#[test]
fn nesting_without_measure_is_refused_while_it_is_read() {
    let nested = |depth: usize, open: &str, inner: &str, close: &str| {
        format!(
            "SELECT {}{inner}{}",
            open.repeat(depth),
            close.repeat(depth)
        )
    };
    for query in [
        nested(5_000, "(", "5", ")"),
        nested(5_000, "-", "5", ""),
        nested(5_000, "5 + ", "5", ""),
        nested(1_000, "abs(", "5", ")"),
        nested(1_000, "(SELECT ", "5", ")"),
        nested(1_000, "* FROM (SELECT ", "5", ")"),
        nested(1_000, "NOT ", "5", ""),
        nested(1_000, "CASE WHEN 1 THEN ", "5", " END"),
        format!("SELECT 5{}", " UNION SELECT 5".repeat(5_000)),
        format!("SELECT max({})", vec!["5"; 5_000].join(", ")),
    ] {
        assert_eq!(hostile(&query), FAILS, "{}", &query[..60]);
    }
    assert_eq!(
        hostile(&nested(20, "(SELECT ", "count(*) FROM city", ")")),
        MATCHES
    );
    let named = (1..40).fold("WITH t0 AS (SELECT 1 AS a)".to_owned(), |text, level| {
        let last = level - 1;
        format!("{text}, t{level} AS (SELECT * FROM t{last} UNION ALL SELECT * FROM t{last})")
    });
    assert_eq!(hostile(&format!("{named} SELECT count(*) FROM t39")), FAILS);
}

#[test]
fn the_next_query_finds_the_database_as_it_was() {
    testing::init_reward::<Plugin>(json!({})).unwrap();
    let task = testing::task(json!({ "sql": "SELECT count(*) FROM city", "schema": SCHEMA }));
    let group = [
        "DELETE FROM city",
        "SELECT 5",
        "DROP TABLE city",
        "SELECT count(*) FROM city",
    ];
    let group = group.map(|query| testing::trajectory().answered(query));
    let grading = Grading {
        split: "test".to_owned(),
        step: 0,
        steps: 0,
        seed: 0,
    };
    let scores = Plugin::grade(&task, &group, &grading).unwrap();
    let matches: Vec<f64> = scores
        .into_iter()
        .map(|score| score.unwrap().get("match").unwrap())
        .collect();
    assert_eq!(matches, [0.0, 1.0, 0.0, 1.0]);
}

#[test]
fn a_query_that_is_none_scores_nothing() {
    for query in [
        "There are five cities.",
        "SELEC 5",
        "SELECT nothing FROM city",
        "SELECT 5 FROM town",
    ] {
        assert_eq!(hostile(query), FAILS, "{query}");
    }
    testing::init_reward::<Plugin>(json!({})).unwrap();
    let task = testing::task(json!({ "sql": "SELECT count(*) FROM city", "schema": SCHEMA }));
    let silent = testing::grade::<Plugin>(&task, testing::trajectory().said("SELECT 5")).unwrap();
    assert_eq!(silent.get("match"), Some(0.0));
}

#[test]
fn the_query_is_found_in_an_answer() {
    for (text, query) in [
        ("SELECT 1", Some("SELECT 1")),
        ("Here:\n```sql\nSELECT 1;\n```\nDone.", Some("SELECT 1;")),
        (
            "```sql\nSELECT 1\n```\nNo, rather:\n```SQL\nSELECT 2\n```",
            Some("SELECT 2"),
        ),
        (
            "```sqlite\nSELECT 1\n```\n```\n5 rows\n```",
            Some("SELECT 1"),
        ),
        ("```\nSELECT 1\n```", Some("SELECT 1")),
        ("```python\nprint(1)\n```", Some("```python\nprint(1)\n```")),
        ("```sql SELECT 1```", Some("SELECT 1")),
        ("```sql\nSELECT 1", Some("SELECT 1")),
        ("```sql\nSELECT 1```", Some("SELECT 1")),
        ("It is ```sql\nSELECT 1;\n```.", Some("SELECT 1;")),
        ("```sql\n```", None),
        (" \n", None),
    ] {
        assert_eq!(answer::query(text), query, "{text:?}");
    }
}

#[test]
fn a_wrong_task_excludes_and_says_why() {
    for (reference, says) in [
        (
            json!({ "sql": "SELECT towns", "schema": SCHEMA }),
            "its reference query fails: no such column: towns",
        ),
        (
            json!({ "sql": "DELETE FROM city", "schema": SCHEMA }),
            "its reference query fails: not authorized",
        ),
        (
            json!({ "sql": "SELECT 1", "schema": "CREATE TABLE" }),
            "the script of its database fails: incomplete input",
        ),
        (
            json!({ "sql": "SELECT 1" }),
            "neither a `schema` nor a `database`",
        ),
        (
            json!({ "sql": "SELECT 1", "schema": "", "database": "x" }),
            "both a `schema` and a `database`",
        ),
        (
            json!({ "sql": "SELECT 1", "database": "x" }),
            "nothing is bound to `databases`",
        ),
        (
            json!({ "query": "SELECT 1", "schema": "" }),
            "unknown field `query`",
        ),
        (json!("SELECT 1"), "its reference is not {"),
        (
            json!({ "sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n", "schema": "" }),
            "more than max_rows allows",
        ),
        (
            json!({ "sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT sum(i) FROM n", "schema": "" }),
            "longer than max_steps = 2000000",
        ),
    ] {
        let error = graded(reference.clone(), "SELECT 1").unwrap_err();
        assert!(error.contains(says), "{reference}\n  {error}");
    }
}

#[test]
fn databases_are_found_by_name_as_files_and_as_scripts() {
    let mut made = rusqlite::Connection::open_in_memory().unwrap();
    made.execute_batch(SCHEMA).unwrap();
    let mut image = made.serialize(rusqlite::MAIN_DB).unwrap().to_vec();
    // The value in a database whose writer kept a write-ahead log.
    image[18..20].fill(2);
    testing::bind("databases", "cities.sqlite", image);
    testing::bind("databases", "inner/inner.sql", SCHEMA);
    testing::bind(
        "databases",
        "broken.db",
        b"SQLite format 3\0 and no more".as_slice(),
    );
    let count = |name: &str| {
        graded(
            json!({ "sql": "SELECT count(*) FROM city", "database": name }),
            "SELECT 5",
        )
    };
    assert_eq!(count("cities"), Ok(MATCHES));
    assert_eq!(count("cities.sqlite"), Ok(MATCHES));
    assert_eq!(count("inner"), Ok(MATCHES));
    assert!(
        count("broken")
            .unwrap_err()
            .contains("broken.db is no SQLite database")
    );
    assert!(
        count("towns")
            .unwrap_err()
            .contains("there is no database `towns`")
    );
}

#[test]
fn a_configuration_with_which_nothing_runs_is_refused() {
    let error = testing::init_reward::<Plugin>(json!({ "max_steps": 0 })).unwrap_err();
    assert!(error_message(&error).contains("max_steps = 0"));
}
