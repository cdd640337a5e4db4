//! The reward for SQL, in its sandbox: only the result counts, not the form of the query, and a query can only read.

use std::fs;

use rlf_tests::{Ended, Host};
use serde_json::{Value, json};

const SCHEMA: &str = "CREATE TABLE city (name TEXT, people INTEGER, area REAL);
    INSERT INTO city VALUES ('Aa', 10, 1.5), ('Bb', 20, 2.0), ('Cc', 20, NULL);";

struct Reward {
    host: Host,
    databases: tempfile::TempDir,
}

impl Reward {
    /// None if the machine could not build the plugin.
    fn new() -> Option<Self> {
        let host = Host::new();
        if !host.plugins().join("reward-sql-result").is_dir() {
            rlf_tests::skip(
                "reward-sql-result is not among the built plugins",
                "`cargo xtask plugins` says why",
            );
            return None;
        }
        let databases = tempfile::tempdir().expect("a temporary folder");
        fs::write(databases.path().join("world.sql"), SCHEMA).expect("can be written");
        Some(Self { host, databases })
    }

    fn graded(&self, sql: &str, answer: &str) -> Ended {
        let bound = format!("databases={}", self.databases.path().display());
        let reference = json!({"sql": sql, "database": "world.sql"}).to_string();
        let arguments = [
            "grade",
            "reward-sql-result",
            "--data",
            &bound,
            "--reference",
            &reference,
            "--answer",
            answer,
            "--json",
        ];
        self.host.plugin(arguments)
    }

    fn terms(&self, sql: &str, answer: &str) -> (f64, f64) {
        let graded: Value = self.graded(sql, answer).succeeded().json();
        let term = |name: &str| graded["terms"][name].as_f64().expect("is a number");
        (term("match"), term("executes"))
    }
}

#[test]
fn the_same_result_counts_however_it_is_asked_for() {
    let Some(reward) = Reward::new() else { return };
    let sql = "SELECT name, people FROM city WHERE people > 15";
    for (answer, expected) in [
        (
            "```sql\nSELECT name, people FROM city WHERE people >= 20\n```",
            (1.0, 1.0),
        ),
        (
            "SELECT name AS n, people * 1.0 FROM city WHERE people = 20 ORDER BY name DESC",
            (1.0, 1.0),
        ),
        (
            "SELECT people, name FROM city WHERE people > 15",
            (0.0, 1.0),
        ),
        (
            "SELECT name, people FROM city WHERE people > 15 UNION ALL SELECT 'Bb', 20",
            (0.0, 1.0),
        ),
        ("SELECT name FROM city", (0.0, 1.0)),
        ("SELECT nothing FROM city", (0.0, 0.0)),
        ("I do not know.", (0.0, 0.0)),
    ] {
        assert_eq!(reward.terms(sql, answer), expected, "{answer}");
    }
    let ordered = "SELECT name FROM city ORDER BY people DESC, name";
    assert_eq!(
        reward
            .terms(
                ordered,
                "SELECT name FROM city ORDER BY people DESC, name ASC"
            )
            .0,
        1.0
    );
    assert_eq!(
        reward
            .terms(ordered, "SELECT name FROM city ORDER BY name")
            .0,
        0.0
    );
}

#[test]
fn an_answer_can_only_read_and_not_for_ever() {
    let Some(reward) = Reward::new() else { return };
    let sql = "SELECT count(*) FROM city";
    for answer in [
        "DELETE FROM city",
        "DROP TABLE city; SELECT 3",
        "SELECT 3; SELECT 3",
        "ATTACH 'world.sql' AS other",
        "PRAGMA writable_schema = 1",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        "SELECT load_extension('x')",
    ] {
        assert_eq!(reward.terms(sql, answer).0, 0.0, "{answer}");
    }
}

/// Each of these is one long step of SQLite, which only the sandbox can stop, or many long steps.
#[test]
fn an_answer_that_takes_the_reward_beyond_its_limits_scores_nothing() {
    let Some(reward) = Reward::new() else { return };
    let sql = "SELECT count(*) FROM city";
    for answer in [
        "SELECT instr(hex(zeroblob(100000000)), 'x')",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
         SELECT sum(instr(zeroblob(60000), zeroblob(30000 - i % 9) || x'01')) FROM n",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
         SELECT sum(hex(zeroblob(30000 - i % 9)) LIKE '%000000000000000000000000000000000000000000001') FROM n",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         SELECT count(*) FROM (SELECT DISTINCT randomblob(20000) FROM n)",
    ] {
        assert_eq!(reward.terms(sql, answer), (0.0, 0.0), "{answer}");
    }
    // The same query as a reference is the row's fault.
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
         SELECT sum(instr(zeroblob(60000), zeroblob(30000 - i % 9) || x'01')) FROM n";
    let graded = reward.graded(endless, "SELECT 1");
    assert_eq!(graded.code(), Some(1), "{graded}");
    assert!(graded.stderr.contains("raise `cpu_ms`"), "{graded}");
}

/// Deep recursion in SQLite would overflow the sandbox's stack and end the call.
#[test]
fn nesting_without_measure_is_the_answers_fault() {
    let Some(reward) = Reward::new() else { return };
    for (open, close) in [
        ("(", ")"),
        ("- ", ""),
        ("0 + ", ""),
        ("abs(", ")"),
        ("(SELECT ", ")"),
        ("* FROM (SELECT ", ")"),
        ("CASE WHEN 1 THEN ", " END"),
    ] {
        for depth in [10, 60, 100, 240, 2_000] {
            let answer = format!("SELECT {}3{}", open.repeat(depth), close.repeat(depth));
            let (matches, executes) = reward.terms("SELECT 3", &answer);
            assert!(
                matches == executes && (matches == 0.0 || depth < 260),
                "{depth} x {open}"
            );
        }
    }
}

#[test]
fn a_large_database_from_a_script_is_queried_as_a_small_one() {
    let Some(reward) = Reward::new() else { return };
    // More than SQLite may hold besides the database.
    let script = "CREATE TABLE city (a);
        INSERT INTO city WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 26)
            SELECT zeroblob(1000000) FROM n;";
    fs::write(reward.databases.path().join("world.sql"), script).expect("can be written");
    assert_eq!(
        reward.terms("SELECT count(*) FROM city", "SELECT count(a) FROM city"),
        (1.0, 1.0)
    );
}

#[test]
fn a_reference_that_fails_is_no_zero() {
    let Some(reward) = Reward::new() else { return };
    let graded = reward.graded("SELECT nothing FROM city", "SELECT 1");
    assert_eq!(graded.code(), Some(1), "{graded}");
    assert!(graded.stderr.contains("reference"), "{graded}");
}
