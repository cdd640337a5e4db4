//! The page of counts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Statistics;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:62rem;padding:0 1rem;color:#222}\
h1{font-size:1.5rem}h2{font-size:1.1rem;margin:1.6rem 0 .4rem}\
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(18rem,1fr));gap:0 2.5rem}\
table{border-collapse:collapse;width:100%}td{padding:.1rem .6rem .1rem 0;vertical-align:middle}\
td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}td.bar{width:45%}\
.bar div{background:#4a7fb5;height:.7rem;border-radius:2px}\
p.unused{color:#555;font-size:.9rem}\
@media(prefers-color-scheme:dark){body{background:#181a1b;color:#ddd}p.unused{color:#aaa}}";

pub(super) fn page(counts: &Statistics, title: &str) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                p {
                    (counts.tasks) " tasks with " (counts.turns) " turns and " (counts.calls) " calls, from "
                    (counts.candidates) " candidates. They use " (counts.environments_used) " of " (counts.environments)
                    " environments and " (counts.tools_used) " of " (counts.tools) " tools."
                }
                p {
                    (counts.templates) " templates of words; the most frequent one is that of "
                    (format!("{:.2} %", 100.0 * counts.most_frequent_template)) " of the tasks."
                }
                @if let Some((tool, share)) = counts.most_requested() {
                    p {
                        "Requests ask for " (counts.by_requested.len()) " tools; the most frequent one, " (tool) ", is that of "
                        (format!("{:.1} %", 100.0 * share)) " of the requests."
                    }
                }
                div.grid {
                    (table("Split", &rows(&counts.by_split), counts.tasks))
                    (table("Unseen in training", &rows(&counts.by_unseen), counts.tasks))
                    (table("Domain", &rows(&counts.by_domain), counts.tasks))
                    (table("Implicitness", &rows(&counts.by_implicit), counts.tasks))
                    (table("Words", &rows(&counts.by_author), counts.tasks))
                    (table("Calls of a task", &rows(&counts.by_calls), counts.tasks))
                    (table("Turns of a task", &rows(&counts.by_turns), counts.tasks))
                    (table("Calls of a turn", &rows(&counts.by_turn_calls), counts.turns))
                    (table("Environments of a task", &rows(&counts.by_servers), counts.tasks))
                    (table("Difficulty", &rows(&counts.by_difficulty), counts.tasks))
                    @for (stage, reasons) in &counts.rejected {
                        (table(
                            &format!("Rejected in {}", stage.as_str()),
                            &reasons.iter().map(|(reason, count)| (reason.as_str().to_owned(), *count)).collect::<Vec<_>>(),
                            usize::try_from(counts.candidates).unwrap_or(usize::MAX),
                        ))
                    }
                }
                @if !counts.tools_unused.is_empty() {
                    h2 { "Tools that no task uses" }
                    p.unused { (counts.tools_unused.join(", ")) }
                }
            }
        }
    };
    page.into_string()
}

fn rows<K: ToString>(counts: &std::collections::BTreeMap<K, usize>) -> Vec<(String, usize)> {
    counts
        .iter()
        .map(|(name, count)| (name.to_string(), *count))
        .collect()
}

fn table(title: &str, rows: &[(String, usize)], of: usize) -> Markup {
    let most = rows
        .iter()
        .map(|(_, count)| *count)
        .max()
        .unwrap_or(1)
        .max(1);
    html! {
        section {
            h2 { (title) }
            table {
                @for (name, count) in rows {
                    tr {
                        td { (name) }
                        td.n { (count) }
                        td.n { (format!("{:.1} %", 100.0 * *count as f64 / of.max(1) as f64)) }
                        td.bar { div style=(format!("width:{:.1}%", 100.0 * *count as f64 / most as f64)) {} }
                    }
                }
            }
        }
    }
}
