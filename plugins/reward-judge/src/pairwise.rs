//! Mode `pairwise`: each pair of the group, in both orders.

use rlf_plugin::Terms;

use crate::ask;
use crate::case::{Case, Cost, with_metrics};
use crate::prompt::Inquiry;
use crate::reply::{PointsOfFirst, Winner};

/// The judge's comparison of two trajectories, by index.
struct Comparison {
    first: usize,
    second: usize,
    reply: Result<PointsOfFirst, String>,
    cost: Cost,
}

impl Comparison {
    fn has(&self, index: usize) -> bool {
        self.first == index || self.second == index
    }

    /// The points of `index`, if it is compared here with `other`.
    fn points(&self, index: usize, other: usize) -> Option<f64> {
        let PointsOfFirst(points) = *self.reply.as_ref().ok()?;
        match (self.first, self.second) {
            pair if pair == (index, other) => Some(points),
            pair if pair == (other, index) => Some(1.0 - points),
            _ => None,
        }
    }
}

/// Grades the group.
pub(crate) fn grade(case: &Case<'_>) -> Result<Vec<Result<Terms, String>>, String> {
    case.at_least_two("pairwise")?;
    let answered = case.answered();
    case.allow(answered.len() * answered.len().saturating_sub(1))?;
    let mut pairs = Vec::new();
    let mut inquiries = Vec::new();
    for &(first, first_text) in &answered {
        for &(second, second_text) in &answered {
            if first != second {
                let candidates = [first_text.named("first"), second_text.named("second")];
                let criteria = &case.settings.criteria;
                let blocks = case.blocks(candidates);
                inquiries.push(Inquiry::new(case.seed, 0, blocks, Winner { criteria }));
                pairs.push((first, second));
            }
        }
    }
    let asked = ask::all(&case.settings.config, &inquiries);
    let comparisons: Vec<Comparison> = pairs
        .into_iter()
        .zip(asked)
        .map(|((first, second), asked)| Comparison {
            first,
            second,
            reply: asked.reply,
            cost: Cost {
                questions: f64::from(asked.questions) / 2.0,
                tokens: asked.tokens as f64 / 2.0,
            },
        })
        .collect();
    let excluded = excluded(&comparisons, case.candidates.len());
    let one = |index| terms(case, &comparisons, &excluded, index);
    Ok((0..case.candidates.len()).map(one).collect())
}

/// Trajectories that are excluded because comparisons with them failed. For each failed comparison it is the trajectory
/// with more failures, or both. So a text that no judge can handle does not take its whole group along.
fn excluded(comparisons: &[Comparison], group: usize) -> Vec<bool> {
    let mut excluded = vec![false; group];
    loop {
        let mut failures = vec![0_usize; group];
        for Comparison {
            first,
            second,
            reply,
            ..
        } in comparisons
        {
            if reply.is_err() && !excluded[*first] && !excluded[*second] {
                failures[*first] += 1;
                failures[*second] += 1;
            }
        }
        let most = failures.iter().copied().max().unwrap_or(0);
        if most == 0 {
            return excluded;
        }
        for (excluded, failures) in excluded.iter_mut().zip(failures) {
            *excluded |= failures == most;
        }
    }
}

fn terms(
    case: &Case<'_>,
    comparisons: &[Comparison],
    excluded: &[bool],
    index: usize,
) -> Result<Terms, String> {
    let won = |share| Terms::new().term("score", share);
    if case.candidates[index].is_none() {
        return Ok(with_metrics(won(0.0), Cost::default(), true));
    }
    if excluded[index] {
        let mut failed = comparisons.iter().filter(|one| one.has(index));
        let why = failed.find_map(|one| one.reply.as_ref().err());
        return Err(why.cloned().unwrap_or_default());
    }
    // Of one opponent: the points of both orders together, at most 2, and how far they are apart.
    let mut points = Vec::new();
    let mut apart = Vec::new();
    for (other, text) in case.candidates.iter().enumerate() {
        if other == index || excluded[other] {
            continue;
        }
        if text.is_none() {
            points.push(2.0);
            continue;
        }
        let both: Vec<f64> = comparisons
            .iter()
            .filter_map(|one| one.points(index, other))
            .collect();
        if let [a, b] = both[..] {
            points.push(a + b);
            apart.push((a - b).abs());
        }
    }
    if points.is_empty() {
        return Err("all trajectories that it was compared with are excluded".to_owned());
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let disagreement = mean(&apart);
    case.settings.accept(disagreement)?;
    let mut cost = Cost::default();
    for one in comparisons.iter().filter(|one| one.has(index)) {
        cost.questions += one.cost.questions;
        cost.tokens += one.cost.tokens;
    }
    let terms = won(mean(&points) / 2.0).metric("disagreement", disagreement);
    Ok(with_metrics(terms, cost, false))
}
