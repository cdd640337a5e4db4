//! A policy is trained with a tool and a reward that are source files.

use rlf_tests::Experiment;

/// The texts of the plugins in one language: a tool `lookup` that reads the data slot `table`, and a reward with the terms
/// `right` and `heard`.
struct Files {
    extension: &'static str,
    table: &'static str,
    right: &'static str,
}

const PYTHON: Files = Files {
    extension: "py",
    table: r"
import csv, io, rlf

@rlf.init
def load():
    global rows
    (text,) = rlf.data('table').values()
    rows = {row['name']: row for row in csv.DictReader(io.StringIO(text.decode()))}

@rlf.tool(pure=True)
def lookup(of: str, get: str) -> str:
    if of not in rows or get not in rows[of]:
        raise rlf.Failure('not found')
    return rows[of][get]
",
    right: r"
import rlf

@rlf.reward
def right(task: rlf.Task, trajectory: rlf.Trajectory) -> dict:
    outcomes = trajectory.outcomes()
    return {
        'right': trajectory.answer in task.accepted_answers(),
        'heard': sum(outcome.ended in ('ok', 'failed') for outcome in outcomes) / max(1, len(outcomes)),
    }
",
};

const JAVASCRIPT: Files = Files {
    extension: "js",
    table: r"
import { Failure, data, init } from 'rlf';

const rows = new Map();

init(() => {
  const [bytes] = data('table').values();
  const [names, ...lines] = new TextDecoder().decode(bytes).trim().split('\n').map((line) => line.split(','));
  for (const line of lines) {
    const row = new Map(names.map((name, index) => [name, line[index]]));
    rows.set(row.get('name'), row);
  }
});

/**
 * @tool
 * @pure
 * @param {string} of
 * @param {string} get
 */
export function lookup(of, get) {
  const value = rows.get(of)?.get(get);
  if (value === undefined) throw new Failure('not found');
  return value;
}
",
    right: r"
/** @reward */
export function right(task, trajectory) {
  const outcomes = trajectory.outcomes();
  const heard = outcomes.filter(({ ended }) => ['ok', 'failed'].includes(ended)).length;
  return {
    right: task.acceptedAnswers().includes(trajectory.answer),
    heard: heard / Math.max(1, outcomes.length),
  };
}
",
};

#[test]
fn a_policy_is_trained_with_a_tool_and_a_reward_in_python() {
    train_with(&PYTHON);
}

#[test]
fn a_policy_is_trained_with_a_tool_and_a_reward_in_javascript() {
    train_with(&JAVASCRIPT);
}

fn train_with(files: &Files) {
    let extension = files.extension;
    let experiment = Experiment::calling();
    let table = experiment.path("table");
    std::fs::create_dir(&table).expect("can be made");
    experiment.write(&format!("table/table.{extension}"), files.table);
    experiment.write("table/plugin.toml", "data = [\"table\"]\n");
    let right = experiment.write(&format!("right.{extension}"), files.right);
    let (table, right) = (table.display(), right.display());
    let settings = format!(
        "plugins.lookup.enabled = false
        plugins.table = {{path = '{table}', data.table = 'run:facts.csv'}}
        plugins.right.path = '{right}'
        rewards.success = 'right.right >= 1'
        rewards.stack = [
            {{plugin = 'right', weights = {{right = 1.0, heard = 0.1}}}},
            {{plugin = 'exact-match', weight = 0.0}},
        ]",
    );
    let experiment = experiment.with_toml(&settings);
    let run = experiment.train("scripts", &[]);
    let mut heard = 0;
    for trajectory in run.trajectories().into_values().flatten() {
        let terms = trajectory["score"]["terms"].as_array();
        let term = |name: &str| {
            let mut terms = terms.into_iter().flatten();
            terms
                .find_map(|term| (term[0] == name).then(|| term[1].as_f64()))
                .flatten()
        };
        assert!(term("right.right").is_some(), "{trajectory}");
        assert_eq!(
            term("right.right"),
            term("exact-match.verbatim"),
            "{trajectory}"
        );
        heard += i32::from(term("right.heard") > Some(0.0));
    }
    assert!(heard > 0, "the tool answered no call");
}
