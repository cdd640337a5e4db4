//! Optional parameters that look useful, as published tools have them.

use std::sync::LazyLock;

use rlf_random::Key;
use serde_json::{Value, json};

use crate::rows::document::{Document, Parameter, ParameterKind, Role};
use crate::rows::draw::{chance, pick};

/// An optional parameter, under one of several names.
struct Extra {
    names: &'static [&'static str],
    kind: ParameterKind,
    role: Role,
    default: Value,
    description: &'static str,
}

fn extra(
    names: &'static [&'static str],
    kind: ParameterKind,
    default: Value,
    description: &'static str,
) -> Extra {
    Extra {
        names,
        kind,
        role: Role::Extra,
        default,
        description,
    }
}

fn choice(values: &[&str]) -> ParameterKind {
    ParameterKind::Choice(values.iter().map(|value| (*value).to_owned()).collect())
}

fn field(name: &str, kind: ParameterKind, description: &str) -> Parameter {
    Parameter {
        name: name.to_owned(),
        description: description.to_owned(),
        kind,
        role: Role::Extra,
        required: true,
        default: Value::Null,
    }
}

static EXTRAS: LazyLock<Vec<Extra>> = LazyLock::new(|| {
    use ParameterKind::{Boolean, Date, Integer, Object, Share, Text, Texts};
    vec![
        Extra {
            role: Role::Details,
            ..extra(
                &["include_details", "include_context", "detailed_report"],
                Boolean,
                json!(false),
                "Whether to add a sentence about where the result comes from. Default is false.",
            )
        },
        Extra {
            role: Role::Format,
            ..extra(
                &["output_format", "result_format", "report_format"],
                choice(&["plain", "json"]),
                json!("plain"),
                "The form of the result: plain text, or a JSON object with the field 'result'.",
            )
        },
        extra(
            &["data_source", "source", "information_source"],
            choice(&["official", "media", "academic", "archive"]),
            json!("official"),
            "Preferred source of the information, such as 'official' or 'archive' records.",
        ),
        extra(
            &["language", "output_language"],
            choice(&["en", "de", "fr", "es", "it"]),
            json!("en"),
            "Language of labels in the result, as a two-letter code; names stay unchanged.",
        ),
        extra(
            &["max_results", "result_limit", "limit"],
            Integer(1, 20),
            json!(1),
            "Maximum number of results to return, from 1 to 20. Only the best match is returned by default.",
        ),
        extra(
            &["confidence_threshold", "min_confidence"],
            Share,
            json!(0.5),
            "Minimum confidence that a record must have to be returned, from 0 to 1.",
        ),
        extra(
            &["date_range", "time_range", "period"],
            Object(vec![
                field(
                    "start_date",
                    Date,
                    "First day of the period, in YYYY-MM-DD format.",
                ),
                field(
                    "end_date",
                    Date,
                    "Last day of the period, in YYYY-MM-DD format.",
                ),
            ]),
            Value::Null,
            "The period that records must come from, given by its first and its last day.",
        ),
        extra(
            &["reference_date", "as_of_date", "valid_on"],
            Date,
            Value::Null,
            "The day on which the information has to be valid, in YYYY-MM-DD format.",
        ),
        extra(
            &["keywords", "tags", "search_terms"],
            Texts,
            Value::Null,
            "Additional words that help to find the right record among similar ones.",
        ),
        extra(
            &["region", "area", "location_hint"],
            Text,
            Value::Null,
            "The region to which the search is limited, if it is known; otherwise leave it out.",
        ),
        extra(
            &[
                "include_alternatives",
                "include_variants",
                "include_former_names",
            ],
            Boolean,
            json!(false),
            "Whether other spellings of the name are tried too. Default is false.",
        ),
        extra(
            &["historical_comparison", "include_trend", "compare_previous"],
            Boolean,
            json!(false),
            "Whether to compare the value with earlier records of the same kind. Default is false.",
        ),
        extra(
            &["detail_level", "verbosity", "granularity"],
            choice(&["summary", "standard", "full"]),
            json!("standard"),
            "How much is searched before an answer is given: 'summary', 'standard' or 'full'.",
        ),
        extra(
            &["year", "reference_year"],
            Integer(1000, 2100),
            Value::Null,
            "The year to which the information should refer, as a four-digit integer.",
        ),
        extra(
            &["significance", "importance_level", "priority"],
            choice(&["low", "medium", "high"]),
            json!("medium"),
            "Minimum importance of the records that are considered in the search.",
        ),
        extra(
            &["filters", "criteria", "search_options"],
            Object(vec![
                field(
                    "verified_only",
                    Boolean,
                    "Whether only verified records count.",
                ),
                field(
                    "min_quality",
                    Integer(1, 10),
                    "Minimum quality of a record, from 1 to 10.",
                ),
            ]),
            Value::Null,
            "Further criteria that every record has to meet before it is returned.",
        ),
        extra(
            &["excluded_sources", "ignored_archives"],
            Texts,
            Value::Null,
            "Names of sources that must not be used, for example because they are out of date.",
        ),
        extra(
            &["requester_role", "user_role", "audience"],
            choice(&["public", "student", "researcher", "journalist"]),
            json!("public"),
            "Who the information is for. It has no influence on the facts themselves.",
        ),
        extra(
            &["timeout_seconds", "max_wait"],
            Integer(1, 60),
            json!(10),
            "Maximum time in seconds that the search may take, from 1 to 60.",
        ),
    ]
});

/// Adds up to `count` optional parameters, each once.
pub(super) fn add(document: &mut Document, count: usize, key: Key) {
    let looks_up = document.table().is_some();
    let mut order: Vec<&Extra> = EXTRAS
        .iter()
        // A calculation has no records to search.
        .filter(|extra| looks_up || matches!(extra.role, Role::Details | Role::Format))
        .collect();
    key.shuffle(&mut order);
    for (number, extra) in order.into_iter().take(count).enumerate() {
        let key = key.named("parameter").at(number as u64);
        let name = pick(key, extra.names).copied().unwrap_or(extra.names[0]);
        let is_taken = |parameter: &Parameter| parameter.name == name;
        if document.parameters.iter().any(is_taken) {
            continue;
        }
        let needs_default = matches!(extra.role, Role::Details | Role::Format)
            || matches!(extra.kind, ParameterKind::Boolean);
        let default = if needs_default || chance(key.named("default"), 0.4) {
            extra.default.clone()
        } else {
            Value::Null
        };
        document.parameters.push(Parameter {
            name: name.to_owned(),
            description: extra.description.to_owned(),
            kind: extra.kind.clone(),
            role: extra.role,
            required: false,
            default,
        });
    }
}
