//! Mode `score`: each trajectory alone, by a number for each criterion.

use rlf_plugin::Terms;

use crate::ask::{self, Asked};
use crate::case::{Case, Cost, with_metrics};
use crate::criteria::{Criterion, weighted_mean};
use crate::prompt::{Block, Inquiry};
use crate::reply::Scores;
use crate::seeded::{Hash, Random};

/// Grades the group.
pub(crate) fn grade(case: &Case<'_>) -> Result<Vec<Result<Terms, String>>, String> {
    let orders = orders(case);
    let answered = case.answered();
    case.allow(answered.len() * orders.len())?;
    let mut inquiries = Vec::with_capacity(answered.len() * orders.len());
    for (_, block) in answered {
        for (look, order) in (0..).zip(&orders) {
            let form = Scores {
                criteria: &case.settings.criteria,
                order: order.clone(),
                judged: case.settings.config.judged,
            };
            let blocks = case.blocks([block.clone()]);
            inquiries.push(Inquiry::new(case.seed, look, blocks, form));
        }
    }
    let asked = ask::all(&case.settings.config, &inquiries);
    let mut looks = asked.chunks(orders.len());
    let lowest = vec![0.0; case.settings.criteria.len()];
    let one = |candidate: &Option<Block>| match candidate {
        Some(_) => combine(case, looks.next().unwrap_or_default()),
        None => Ok(with_metrics(terms(case, &lowest), Cost::default(), true)),
    };
    Ok(case.candidates.iter().map(one).collect())
}

/// The order of the criteria in each look: the operator's, and then another one, the same for the whole group.
fn orders(case: &Case<'_>) -> Vec<Vec<usize>> {
    let first: Vec<usize> = (0..case.settings.criteria.len()).collect();
    if case.settings.config.looks == 1 {
        return vec![first];
    }
    let mut second = Random::new(Hash::new(case.seed).text("criteria").finish()).order(first.len());
    if second == first {
        second.reverse();
    }
    vec![first, second]
}

/// The mean of the looks.
fn combine(case: &Case<'_>, looks: &[Asked<Vec<f64>>]) -> Result<Terms, String> {
    let mut cost = Cost::default();
    let mut values: Vec<&[f64]> = Vec::with_capacity(looks.len());
    for look in looks {
        cost.questions += f64::from(look.questions);
        cost.tokens += look.tokens as f64;
        values.push(look.reply.as_deref().map_err(Clone::clone)?);
    }
    match values[..] {
        [only] => Ok(with_metrics(terms(case, only), cost, false)),
        [first, second] => {
            let pairs = || first.iter().zip(second);
            let means: Vec<f64> = pairs().map(|(a, b)| f64::midpoint(*a, *b)).collect();
            let apart: f64 = pairs().map(|(a, b)| (a - b).abs()).sum();
            let disagreement = apart / means.len() as f64;
            case.settings.accept(disagreement)?;
            let graded = terms(case, &means).metric("disagreement", disagreement);
            Ok(with_metrics(graded, cost, false))
        }
        _ => Err("the judge was not asked".to_owned()),
    }
}

/// The values of the criteria, each 0 to 1, and their weighted mean.
fn terms(case: &Case<'_>, values: &[f64]) -> Terms {
    let criteria = &case.settings.criteria;
    let terms = Terms::new().term("score", weighted_mean(criteria, values));
    let add = |terms: Terms, (criterion, value): (&Criterion, &f64)| {
        terms.term(criterion.name.as_str(), *value)
    };
    criteria.iter().zip(values).fold(terms, add)
}
