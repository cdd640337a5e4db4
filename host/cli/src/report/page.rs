//! Composes the report page.

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html as markup};
use rlf_run::RunHistory;
use rlf_train::metrics::names;
use serde_json::{Map, Value};

use super::chart::{Series, css_colour, svg};
use crate::display::printable;

const STYLE: &str = "
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 1060px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid #ddd; }
table { border-collapse: collapse; } th, td { padding: .2rem .8rem .2rem 0; text-align: right; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(320px, 1fr)); gap: 1rem; }
figure { margin: 0; } figcaption { font-size: .85rem; color: #555; } svg { max-width: 100%; height: auto; }
pre { background: #f6f6f6; padding: .8rem; overflow-x: auto; font-size: .82rem; white-space: pre-wrap; word-break: break-word; }
details { margin: .4rem 0; } summary { cursor: pointer; }
.prompt { color: #888; } .model { color: #0a6b2d; font-weight: 600; } .observation { color: #0b5394; }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 .8em; vertical-align: -.05em; }
.good { color: #0a6b2d; } .bad { color: #a33; } .muted { color: #777; }
";

/// The whole page as HTML.
pub(crate) fn html(run: &RunHistory) -> anyhow::Result<String> {
    let page = markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (run.name) " · rlf-host" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (run.name) }
                p .muted { (length(run)) }
                (success(run)?)
                (curves(run, "rl", "Reinforcement learning")?)
                (curves(run, "sft", "Supervised fine-tuning")?)
                (calls(run))
                (trajectories(run))
                h2 { "Configuration" }
                pre { (run.config) }
                @if !run.record.is_empty() {
                    h2 { "What ran" }
                    pre { (run.record) }
                }
            }
        }
    };
    Ok(page.into_string())
}

fn length(run: &RunHistory) -> String {
    let steps = |phase, name: &str| {
        let last = run
            .phase(phase)
            .filter(|line| line.contains_key(names::LOSS))
            .filter_map(|line| line.get(names::STEP).and_then(Value::as_u64))
            .max();
        match last {
            None => format!("no {name} steps"),
            Some(1) => format!("1 {name} step"),
            Some(last) => format!("{last} {name} steps"),
        }
    };
    let seconds = run
        .lines
        .iter()
        .filter_map(|line| line.get(names::ELAPSED_S).and_then(Value::as_f64))
        .fold(0.0, f64::max);
    let (sft, rl) = (steps("sft", "SFT"), steps("rl", "RL"));
    format!("{sft}, {rl}; the last step ended after {seconds:.0} s")
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |value| format!("{:.1} %", value * 100.0))
}

/// Charts success on the test split, then validation over steps.
fn success(run: &RunHistory) -> anyhow::Result<Markup> {
    let test = run.evaluations("test");
    let mut kinds: Vec<&String> = test
        .iter()
        .filter_map(|line| {
            line.get(names::EVAL_SAMPLED_BY_KIND)
                .and_then(Value::as_object)
        })
        .flat_map(Map::keys)
        .collect();
    kinds.sort();
    kinds.dedup();
    let moment = |line: &Map<String, Value>| {
        line.get(names::MOMENT)
            .and_then(Value::as_str)
            .unwrap_or("evaluation")
            .to_owned()
    };
    let number = |line: &Map<String, Value>, key: &str| line.get(key).and_then(Value::as_f64);
    let by_kind = |line: &Map<String, Value>, kind: &str| {
        line.get(names::EVAL_SAMPLED_BY_KIND)
            .and_then(|kinds| kinds.get(kind))
            .and_then(Value::as_f64)
    };
    let validation = run.evaluations("validation");
    // RL's curve begins at the end of SFT.
    let step = |line: &Map<String, Value>| match line.get(names::PHASE).and_then(Value::as_str) {
        Some("rl") => number(line, names::STEP),
        _ => Some(0.0),
    };
    let line = |key: &str, name: &str| Series {
        name: name.into(),
        points: validation
            .iter()
            .filter_map(|l| Some((step(l)?, number(l, key)?)))
            .collect(),
    };
    let curves = [
        line(names::EVAL_SAMPLED, "sampled"),
        line(names::EVAL_GREEDY, "greedy"),
    ];
    Ok(markup! {
        h2 { "Success on the test split" }
        @if test.is_empty() { p .muted { "not measured yet" } }
        @else {
            table {
                thead { tr { th { } @for line in &test { th { (moment(line)) } } } }
                tbody {
                    tr { td { "greedy" } @for line in &test { td { (percent(number(line, names::EVAL_GREEDY))) } } }
                    tr {
                        td { "sampled" }
                        @for line in &test {
                            td {
                                (percent(number(line, names::EVAL_SAMPLED)))
                                @if let (Some(low), Some(high)) = (number(line, names::EVAL_SAMPLED_LOW), number(line, names::EVAL_SAMPLED_HIGH)) {
                                    " " span .muted { "[" (percent(Some(low))) ", " (percent(Some(high))) "]" }
                                }
                            }
                        }
                    }
                    @for kind in &kinds {
                        tr { td .muted { "sampled, " (kind) } @for line in &test { td { (percent(by_kind(line, kind))) } } }
                    }
                }
            }
        }
        @if curves.iter().any(|c| !c.points.is_empty()) {
            h2 { "Success on the validation split" }
            (figure(&curves, "RL step", Some((0.0, 1.0)), (760, 280))?)
        }
    })
}

fn figure(
    series: &[Series],
    x_label: &str,
    range: Option<(f64, f64)>,
    size: (u32, u32),
) -> anyhow::Result<Markup> {
    let drawing = svg(series, x_label, range, size)?;
    Ok(markup! {
        figure {
            figcaption {
                @for (index, line) in series.iter().enumerate() {
                    @if series.len() > 1 { span .key style=(format!("background:{}", css_colour(index))) {} }
                    (line.name)
                }
            }
            (PreEscaped(drawing))
        }
    })
}

fn curves(run: &RunHistory, phase: &str, title: &str) -> anyhow::Result<Markup> {
    let mut drawn = Vec::new();
    for key in run.numeric_keys(phase) {
        if key.starts_with(names::EVAL) {
            continue;
        }
        let series = series(run, phase, &key);
        if series.points.len() > 1 {
            drawn.push(figure(&[series], "step", None, (340, 190))?);
        }
    }
    Ok(markup! {
        @if !drawn.is_empty() {
            h2 { (title) }
            div .charts { @for chart in &drawn { (chart) } }
        }
    })
}

fn calls(run: &RunHistory) -> Markup {
    let calls = run.calls();
    let mut endings: Vec<&String> = calls.values().flat_map(BTreeMap::keys).collect();
    endings.sort();
    endings.dedup();
    markup! {
        @if !calls.is_empty() {
            h2 { "How calls ended, over all RL steps" }
            table {
                thead { tr { th { "tool" } @for ending in &endings { th { (ending) } } } }
                tbody {
                    @for (tool, counts) in &calls {
                        tr {
                            td { (printable(tool)) }
                            @for ending in &endings {
                                td { (counts.get(*ending).map_or_else(|| "0".into(), |n| format!("{n:.0}"))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn trajectories(run: &RunHistory) -> Markup {
    markup! {
        @if !run.trajectories.is_empty() {
            h2 { "A sample of trajectories" }
            p .muted {
                "What the model " span .model { "said and is trained on" } ", and what it only saw: "
                span .observation { "observations" } "."
            }
            @for samples in groups(&run.trajectories) { (group(samples)) }
        }
    }
}

/// The records one after the other, with the samples of one task in one step together.
fn groups(records: &[Value]) -> impl Iterator<Item = &[Value]> {
    records.chunk_by(|one, next| one["step"] == next["step"] && one["task"] == next["task"])
}

/// Renders the samples of one task.
fn group(samples: &[Value]) -> Markup {
    let [first, _, ..] = samples else {
        return markup! { @for record in samples { (trajectory(record)) } };
    };
    let succeed = |record: &&Value| record["score"]["success"] == true;
    markup! {
        details {
            summary {
                "step " (first["step"]) " · " (samples.len()) " samples, "
                (samples.iter().filter(succeed).count()) " succeed · "
                (first["question"].as_str().map(printable).unwrap_or_default())
            }
            @for record in samples { (trajectory(record)) }
        }
    }
}

/// Renders one record of the trajectories file: `{step, task, trajectory, score}`.
fn trajectory(record: &Value) -> Markup {
    let text = |value: Option<&Value>| match value {
        Some(Value::String(text)) => printable(text),
        Some(value) if !value.is_null() => printable(&value.to_string()),
        _ => String::new(),
    };
    let trajectory = &record["trajectory"];
    let score = &record["score"];
    let success = score["success"].as_bool();
    let events = trajectory["events"].as_array().cloned().unwrap_or_default();
    let question = text(record.get("question"));
    markup! {
        details {
            summary {
                "step " (text(record.get("step"))) " · "
                @match success {
                    Some(true) => span .good { "success" },
                    Some(false) => span .bad { "failure" },
                    None => span .muted { "excluded" },
                }
                " · reward " (score["reward"].as_f64().map_or_else(|| "–".into(), |r| format!("{r:.2}")))
                " · " (question)
            }
            @for event in &events {
                @if let Some(turn) = event.get("turn") {
                    pre .model { (text(turn.get("text"))) }
                } @else if let Some(outcome) = event.get("outcome") {
                    pre .observation { (text(outcome.get("name"))) " " (text(outcome.get("ended"))) ": " (observation(outcome)) }
                } @else if let Some(user) = event.get("user") {
                    pre .prompt { (text(user.get("content"))) }
                }
            }
            p .muted {
                "finished: " (text(trajectory.get("finish"))) ", answer: " (text(trajectory.get("answer")))
                @if let Some(terms) = score["terms"].as_array() {
                    @for term in terms { " · " (text(term.get(0))) " " (text(term.get(1))) }
                }
            }
        }
    }
}

fn observation(outcome: &Value) -> String {
    let parts = outcome["observation"]["content"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let shown: Vec<String> = parts
        .iter()
        .map(|part| match part.get("text").and_then(Value::as_str) {
            Some(text) => printable(text),
            None => printable(&part.to_string()),
        })
        .collect();
    shown.concat()
}

/// The values of `key` over the steps of `phase`.
fn series(run: &RunHistory, phase: &str, key: &str) -> Series {
    let points = run
        .phase(phase)
        .filter_map(|line| Some((line.get("step")?.as_f64()?, line.get(key)?.as_f64()?)))
        .collect();
    Series {
        name: key.to_owned(),
        points,
    }
}
