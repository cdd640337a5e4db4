//! The forms of an answer, and what is read from it. Nothing is clipped or guessed.

use rlf_plugin::serde_json::{Map, Value, json};

use crate::config::Judged;
use crate::criteria::{Criterion, Scale};
use crate::json::{self, Json, Object};

/// One kind of question: what the judge has to do, and how its answer is read.
pub(crate) trait Form {
    /// The content of an answer.
    type Reply;

    /// The key of the answer, beside `nonce` and `reasons`.
    const KEY: &'static str;

    /// The judge's task, in whole lines.
    fn task(&self) -> String;

    /// The key and the value that the judge has to write, as in JSON.
    fn shape(&self) -> String;

    /// The JSON Schema of the key's value. It allows every value that [`Form::read`] takes.
    fn schema(&self) -> Value;

    /// Reads the key's value. The reason for a refusal goes back to the judge, so it has no words of the answer.
    fn read(&self, value: &Json) -> Result<Self::Reply, String>;
}

/// The JSON Schema of an answer. The keys stand in the order in which the judge has to write them.
pub(crate) fn schema<F: Form>(form: &F, nonce: &str) -> Value {
    let mut properties = Map::new();
    properties.insert(
        "nonce".to_owned(),
        json!({ "type": "string", "enum": [nonce] }),
    );
    properties.insert("reasons".to_owned(), json!({}));
    properties.insert(F::KEY.to_owned(), form.schema());
    json!({
        "type": "object",
        "properties": properties,
        "required": ["nonce", F::KEY],
        "additionalProperties": false,
    })
}

/// Reads an answer.
pub(crate) fn read<F: Form>(form: &F, nonce: &str, answer: &str) -> Result<F::Reply, String> {
    let mut object: Object = json::read(answer)?;
    match object.remove("nonce") {
        Some(Json::Text(text)) if text == nonce => {}
        Some(_) => return Err("its `nonce` is not the nonce of the question".to_owned()),
        None => return Err("it has no `nonce`".to_owned()),
    }
    object.remove("reasons");
    let value = object
        .remove(F::KEY)
        .ok_or_else(|| format!("it has no `{}`", F::KEY))?;
    if !object.is_empty() {
        return Err(format!(
            "it has a key other than `nonce`, `reasons` and `{}`",
            F::KEY
        ));
    }
    form.read(&value)
}

/// A score for each criterion.
pub(crate) struct Scores<'a> {
    pub(crate) criteria: &'a [Criterion],
    /// The order in which the judge sees them.
    pub(crate) order: Vec<usize>,
    pub(crate) judged: Judged,
}

impl Scores<'_> {
    fn in_order(&self) -> impl Iterator<Item = &Criterion> {
        self.order.iter().filter_map(|at| self.criteria.get(*at))
    }
}

impl Form for Scores<'_> {
    /// The values of the criteria as shares of their scales, in the operator's order.
    type Reply = Vec<f64>;

    const KEY: &'static str = "scores";

    fn task(&self) -> String {
        let line = |criterion: &Criterion| {
            let Criterion { name, question, .. } = criterion;
            let Scale { low, high } = criterion.scale;
            format!("- `{name}`, from {low} (worst) to {high} (best): {question}\n")
        };
        let criteria: Vec<String> = self.in_order().map(line).collect();
        format!(
            "Grade the block `candidate`, {}, by each criterion on its own:\n{}",
            self.judged.about(),
            criteria.concat()
        )
    }

    fn shape(&self) -> String {
        let score = |criterion: &Criterion| {
            let (name, scale) = (&criterion.name, criterion.scale);
            format!("\"{name}\": <number from {} to {}>", scale.low, scale.high)
        };
        let scores: Vec<String> = self.in_order().map(score).collect();
        format!("\"scores\": {{{}}}", scores.join(", "))
    }

    fn schema(&self) -> Value {
        let score = |Criterion { name, scale, .. }: &Criterion| {
            let score = json!({ "type": "number", "minimum": scale.low, "maximum": scale.high });
            (name.clone(), score)
        };
        let scores: Map<String, Value> = self.in_order().map(score).collect();
        let names: Vec<&String> = scores.keys().collect();
        json!({
            "type": "object",
            "properties": scores,
            "required": names,
            "additionalProperties": false,
        })
    }

    fn read(&self, value: &Json) -> Result<Vec<f64>, String> {
        let Json::Object(scores) = value else {
            return Err("its `scores` is not an object".to_owned());
        };
        let mut values = Vec::with_capacity(self.criteria.len());
        for Criterion { name, scale, .. } in self.criteria {
            let score = match scores.get(name) {
                Some(Json::Number(score)) => *score,
                Some(_) => return Err(format!("its score for `{name}` is not a number")),
                None => return Err(format!("it has no score for `{name}`")),
            };
            values.push(scale.share(score).ok_or_else(|| {
                let (low, high) = (scale.low, scale.high);
                format!("its score for `{name}` is outside the scale from {low} to {high}")
            })?);
        }
        if scores.len() > values.len() {
            return Err("it has a score for a name that is not a criterion".to_owned());
        }
        Ok(values)
    }
}

/// The better one of two candidates.
pub(crate) struct Winner<'a> {
    pub(crate) criteria: &'a [Criterion],
}

/// Points of the candidate that comes first: 1, 1/2 or 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PointsOfFirst(pub(crate) f64);

impl Form for Winner<'_> {
    type Reply = PointsOfFirst;

    const KEY: &'static str = "winner";

    fn task(&self) -> String {
        format!(
            "Compare the candidates `first` and `second`. Their order means nothing. Say which one is better by \
             these criteria together, or that neither is:\n{}",
            weighed(self.criteria)
        )
    }

    fn shape(&self) -> String {
        "\"winner\": <\"first\", \"second\" or \"tie\">".to_owned()
    }

    fn schema(&self) -> Value {
        json!({ "type": "string", "enum": ["first", "second", "tie"] })
    }

    fn read(&self, value: &Json) -> Result<PointsOfFirst, String> {
        let winner = if let Json::Text(text) = value {
            text
        } else {
            ""
        };
        match winner {
            "first" => Ok(PointsOfFirst(1.0)),
            "second" => Ok(PointsOfFirst(0.0)),
            "tie" => Ok(PointsOfFirst(0.5)),
            _ => Err("its `winner` is none of \"first\", \"second\" and \"tie\"".to_owned()),
        }
    }
}

/// All candidates in order.
pub(crate) struct Order<'a> {
    pub(crate) criteria: &'a [Criterion],
    /// The labels of the candidates, as the judge sees them.
    pub(crate) labels: Vec<String>,
}

impl Form for Order<'_> {
    /// Indices of labels, the best first.
    type Reply = Vec<usize>;

    const KEY: &'static str = "order";

    fn task(&self) -> String {
        format!(
            "Rank the candidates {} from the best to the worst. Their labels and their order mean nothing. Rank them \
             by these criteria together:\n{}",
            self.labels.join(", "),
            weighed(self.criteria)
        )
    }

    fn shape(&self) -> String {
        "\"order\": [<every label as a string, the best first>]".to_owned()
    }

    fn schema(&self) -> Value {
        let (labels, count) = (&self.labels, self.labels.len());
        // Not all servers know `uniqueItems`, so `read` alone refuses a label that occurs twice.
        json!({
            "type": "array",
            "items": { "type": "string", "enum": labels },
            "minItems": count,
            "maxItems": count,
        })
    }

    fn read(&self, value: &Json) -> Result<Vec<usize>, String> {
        let Json::List(named) = value else {
            return Err("its `order` is not a list".to_owned());
        };
        let mut order = Vec::with_capacity(self.labels.len());
        for name in named {
            let place = |label: &String| matches!(name, Json::Text(text) if text == label);
            let Some(at) = self.labels.iter().position(place) else {
                return Err("its `order` has an item that is not a label".to_owned());
            };
            if order.contains(&at) {
                return Err("its `order` has a label twice".to_owned());
            }
            order.push(at);
        }
        if order.len() < self.labels.len() {
            return Err("its `order` lacks a label".to_owned());
        }
        Ok(order)
    }
}

/// A list of the criteria, with weights if these differ.
fn weighed(criteria: &[Criterion]) -> String {
    let same = criteria
        .windows(2)
        .all(|two| two[0].weight == two[1].weight);
    let line = |Criterion {
                    name,
                    question,
                    weight,
                    ..
                }: &Criterion| {
        let weight = if same {
            String::new()
        } else {
            format!(" (weight {weight})")
        };
        format!("- `{name}`{weight}: {question}\n")
    };
    criteria.iter().map(line).collect()
}
