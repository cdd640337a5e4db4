//! The terms of `turns` beside the credit that plugins give. A plugin does not declare its terms, and a term may have
//! no credit in a whole group, for example if nobody made a call. So a term without credit is only warned of.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use rlf_dialogue::score::Graded;

/// The terms of `turns` that are settled, as `plugin.term`: they have had credit, or were warned of.
#[derive(Debug, Default)]
pub(crate) struct SettledTerms(Mutex<BTreeSet<String>>);

impl SettledTerms {
    /// Finds the terms to warn of after a group: those without credit that were not settled before. `turns` has the
    /// weights by `plugin.term`.
    pub(crate) fn new_without_credit<'a>(
        &self,
        turns: &'a BTreeMap<String, f64>,
        scores: &'a [Graded],
    ) -> Vec<WithoutCredit<'a>> {
        if turns.is_empty() {
            return Vec::new();
        }
        let credits = scores.iter().flatten().flat_map(|score| &score.per_event);
        let given: BTreeSet<&str> = credits.map(|credit| credit.term.as_str()).collect();
        let mut settled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let with_credit = turns.keys().filter(|term| given.contains(term.as_str()));
        settled.extend(with_credit.cloned());
        let mut lacking = without_credit(turns, &given);
        lacking.retain(|one| settled.insert(format!("{}.{}", one.plugin, one.term)));
        lacking
    }
}

/// A term of `turns` that no event of a group has, although its plugin gave credit as terms that `turns` lacks.
#[derive(Debug, PartialEq)]
pub(crate) struct WithoutCredit<'a> {
    plugin: &'a str,
    term: &'a str,
    /// The terms that `turns` lacks.
    given: BTreeSet<&'a str>,
}

/// Finds the terms without credit among the weights of `turns`. Terms are `plugin.term`.
fn without_credit<'a>(
    turns: &'a BTreeMap<String, f64>,
    given: &BTreeSet<&'a str>,
) -> Vec<WithoutCredit<'a>> {
    // A name of a plugin has no dot.
    let weighed: BTreeSet<(&str, &str)> =
        turns.keys().filter_map(|key| key.split_once('.')).collect();
    let given: BTreeSet<(&str, &str)> = given
        .iter()
        .filter_map(|term| term.split_once('.'))
        .collect();
    let missing = weighed.difference(&given);
    let missing = missing.map(|&(plugin, term)| WithoutCredit {
        plugin,
        term,
        given: given
            .difference(&weighed)
            .filter_map(|(of, other)| (*of == plugin).then_some(*other))
            .collect(),
    });
    missing.filter(|one| !one.given.is_empty()).collect()
}

impl fmt::Display for WithoutCredit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            plugin,
            term,
            given,
        } = self;
        let names: Vec<String> = given.iter().map(|term| format!("`{term}`")).collect();
        let names = names.join(", ");
        write!(
            f,
            "`turns` in [[rewards.stack]] weighs the per-event term `{plugin}.{term}`, but plugin `{plugin}` gave credit as \
             {names}; "
        )?;
        match rlf_config::nearest(term, given.iter().copied()) {
            Some(near) => write!(f, "did you mean `{near}`?"),
            None => f.write_str("if it has no such term, it counts 0"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rlf_dialogue::score::{EventCredit, Excluded, ExclusionCause, Score};

    use super::*;

    fn group(terms: &[&str]) -> Vec<Graded> {
        let credit = |term: &&str| EventCredit {
            event: 0,
            term: (*term).to_owned(),
            value: 1.0,
        };
        let score = Score {
            reward: 0.0,
            success: false,
            terms: vec![],
            per_event: terms.iter().map(credit).collect(),
            metrics: vec![],
            turn_rewards: None,
        };
        let excluded = Excluded {
            reason: "a tool was down".to_owned(),
            cause: ExclusionCause::Rollout,
        };
        vec![Err(excluded), Ok(score)]
    }

    /// The warnings after each of these groups, which have these terms.
    fn warnings<const N: usize>(turns: &[&str], groups: [&[&str]; N]) -> [Vec<String>; N] {
        let turns: BTreeMap<String, f64> =
            turns.iter().map(|term| ((*term).to_owned(), 1.0)).collect();
        let settled = SettledTerms::default();
        groups.map(|terms| {
            let group = group(terms);
            let found = settled.new_without_credit(&turns, &group);
            found.iter().map(ToString::to_string).collect()
        })
    }

    #[test]
    fn a_misspelt_term_is_warned_of_once_with_the_term_that_was_meant() {
        let given = ["a.step", "a.calls", "b.stp"];
        let [first, second] = warnings(&["a.stp"], [&given, &given]);
        assert_eq!(
            first,
            [
                "`turns` in [[rewards.stack]] weighs the per-event term `a.stp`, but plugin `a` gave credit as `calls`, \
                 `step`; did you mean `step`?"
            ]
        );
        assert!(second.is_empty(), "{second:?}");
        // Each term has a warning of its own, whichever group lacks it first.
        let [first, second] = warnings(&["a.stp", "b.matched"], [&["a.step"], &["b.called"]]);
        assert!(first[0].contains("`a.stp`"), "{first:?}");
        assert!(
            second[0].contains("`b.matched`") && second[0].ends_with("it counts 0"),
            "{second:?}"
        );
    }

    #[test]
    fn a_term_that_may_come_later_or_has_come_is_not_warned_of() {
        for (turns, given) in [
            // It has credit; the plugin gave none; the similar one is weighed, too.
            (&["a.step"][..], &["a.step", "a.other"][..]),
            (&["a.step"], &["b.other"]),
            (&["a.stp", "a.step"], &["a.step"]),
        ] {
            assert_eq!(warnings(turns, [given]), [[""; 0]], "{turns:?}");
        }
        let later = warnings(&["a.step"], [&["a.step"], &["a.steps"]]);
        assert_eq!(later, [[""; 0]; 2]);
    }
}
