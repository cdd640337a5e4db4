//! Mode `ranking`: the whole group in one question, under labels that say nothing.

use rlf_plugin::Terms;

use crate::ask;
use crate::case::{Case, Cost, with_metrics};
use crate::prompt::{Block, Inquiry};
use crate::reply::Order;
use crate::seeded::{Hash, Random};

/// Grades the group.
pub(crate) fn grade(case: &Case<'_>) -> Result<Vec<Result<Terms, String>>, String> {
    case.at_least_two("ranking")?;
    let answered = case.answered();
    let orders = orders(case, answered.len());
    case.allow(orders.len())?;
    let inquiries: Vec<Inquiry<Order<'_>>> = (0..)
        .zip(&orders)
        .map(|(look, order)| inquiry(case, look, order, &answered))
        .collect();
    let mut ranks: Vec<Vec<usize>> = vec![Vec::new(); answered.len()];
    let mut cost = Cost::default();
    for (order, asked) in orders
        .iter()
        .zip(ask::all(&case.settings.config, &inquiries))
    {
        let share = answered.len() as f64;
        cost.questions += f64::from(asked.questions) / share;
        cost.tokens += asked.tokens as f64 / share;
        match asked.reply {
            Ok(reply) => {
                for (rank, label) in reply.into_iter().enumerate() {
                    ranks[order[label]].push(rank);
                }
            }
            Err(why) => return Ok(unranked(case, &why)),
        }
    }
    let mut ranks = ranks.into_iter();
    let one = |candidate: &Option<Block>| match candidate {
        Some(_) => terms(case, &ranks.next().unwrap_or_default(), cost),
        None => Ok(nothing()),
    };
    Ok(case.candidates.iter().map(one).collect())
}

/// For each look, the places in `answered` in the order in which the judge sees them. The second look has the order of
/// the first one reversed, so what comes early in one comes late in the other. One trajectory needs no look.
fn orders(case: &Case<'_>, answered: usize) -> Vec<Vec<usize>> {
    if answered < 2 {
        return Vec::new();
    }
    let first = Random::new(Hash::new(case.seed).text("candidates").finish()).order(answered);
    if case.settings.config.looks == 1 {
        return vec![first];
    }
    let second = first.iter().rev().copied().collect();
    vec![first, second]
}

fn inquiry<'a>(
    case: &'a Case<'_>,
    look: u64,
    order: &[usize],
    answered: &[(usize, &Block)],
) -> Inquiry<Order<'a>> {
    let labels: Vec<String> = (0..order.len()).map(label).collect();
    let candidates = order
        .iter()
        .zip(&labels)
        .map(|(place, label)| answered[*place].1.named(label));
    let blocks = case.blocks(candidates);
    let criteria = &case.settings.criteria;
    Inquiry::new(case.seed, look, blocks, Order { criteria, labels })
}

/// `A` to `Z`, then `AA`, `AB` and so on.
fn label(index: usize) -> String {
    let letter = char::from(b'A' + (index % 26) as u8);
    match index / 26 {
        0 => letter.to_string(),
        more => label(more - 1) + &letter.to_string(),
    }
}

/// The mean of `1 - rank / (group - 1)` over the looks.
fn terms(case: &Case<'_>, ranks: &[usize], cost: Cost) -> Result<Terms, String> {
    let value = |rank: &usize| 1.0 - *rank as f64 / (case.candidates.len() - 1) as f64;
    let values: Vec<f64> = ranks.iter().map(value).collect();
    let (score, disagreement) = match values[..] {
        // The only trajectory of the group that has something to judge is its best.
        [] => (1.0, None),
        [only] => (only, None),
        [first, second, ..] => (f64::midpoint(first, second), Some((first - second).abs())),
    };
    let mut terms = Terms::new().term("score", score);
    if let Some(disagreement) = disagreement {
        case.settings.accept(disagreement)?;
        terms = terms.metric("disagreement", disagreement);
    }
    Ok(with_metrics(terms, cost, false))
}

fn nothing() -> Terms {
    with_metrics(Terms::new().term("score", 0.0), Cost::default(), true)
}

/// Without a usable answer there is no rank. A trajectory with nothing to judge is still the worst.
fn unranked(case: &Case<'_>, why: &str) -> Vec<Result<Terms, String>> {
    let one = |candidate: &Option<Block>| match candidate {
        Some(_) => Err(why.to_owned()),
        None => Ok(nothing()),
    };
    case.candidates.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn labels_are_letters() {
        assert_eq!(
            [0, 25, 26, 27, 51, 52].map(label),
            ["A", "Z", "AA", "AB", "AZ", "BA"]
        );
    }
}
