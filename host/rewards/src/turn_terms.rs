//! The terms of `turns` beside the credit that plugins give. A plugin does not declare its terms, and a term may have
//! no credit in a whole group, for example if nobody made a call. So only a term that looks misspelt is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use rlf_dialogue::score::{Excluded, ExclusionCause, Graded};

/// A term of `turns` that no event of a group has, although its plugin gave credit as terms that `turns` lacks.
#[derive(Debug, PartialEq)]
pub(crate) struct WithoutCredit<'a> {
    plugin: &'a str,
    term: &'a str,
    /// The terms that `turns` lacks.
    given: BTreeSet<&'a str>,
}

/// Finds the terms without credit among the weights of `turns`, which are by `plugin.term`.
pub(crate) fn without_credit<'a>(
    turns: &'a BTreeMap<String, f64>,
    scores: &'a [Graded],
) -> Vec<WithoutCredit<'a>> {
    // A name of a plugin has no dot.
    let weighed: BTreeSet<(&str, &str)> =
        turns.keys().filter_map(|key| key.split_once('.')).collect();
    let credits = scores.iter().flatten().flat_map(|score| &score.per_event);
    let given: BTreeSet<(&str, &str)> = credits
        .filter_map(|credit| credit.term.split_once('.'))
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

impl WithoutCredit<'_> {
    /// The refusal of the term, if it is similar to one that there is.
    pub(crate) fn misspelt(&self) -> Option<Excluded> {
        let near = rlf_config::nearest(self.term, self.given.iter().copied())?;
        Some(Excluded {
            reason: format!(
                "{self}; did you mean `{near}`? If the plugin has both, add `{near} = 0.0` to `turns`"
            ),
            cause: ExclusionCause::Config,
        })
    }
}

impl fmt::Display for WithoutCredit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            plugin,
            term,
            given,
        } = self;
        let given: Vec<String> = given.iter().map(|term| format!("`{term}`")).collect();
        let given = given.join(", ");
        write!(
            f,
            "`turns` in [[rewards.stack]] weighs the per-event term `{plugin}.{term}`, but plugin `{plugin}` gave credit as \
             {given}"
        )
    }
}

#[cfg(test)]
mod tests {
    use rlf_dialogue::score::{EventCredit, Score};

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

    fn turns(terms: &[&str]) -> BTreeMap<String, f64> {
        terms.iter().map(|term| ((*term).to_owned(), 1.0)).collect()
    }

    #[test]
    fn a_misspelt_term_is_refused_with_the_term_that_was_meant() {
        let (turns, group) = (turns(&["a.stp"]), group(&["a.step", "a.calls", "b.stp"]));
        let found = without_credit(&turns, &group);
        let refused = found[0].misspelt().unwrap();
        assert_eq!(refused.cause, ExclusionCause::Config);
        assert_eq!(
            refused.reason,
            "`turns` in [[rewards.stack]] weighs the per-event term `a.stp`, but plugin `a` gave credit as `calls`, `step`; \
             did you mean `step`? If the plugin has both, add `step = 0.0` to `turns`"
        );
    }

    #[test]
    fn a_term_that_may_come_later_is_not_refused() {
        let nothing: [WithoutCredit; 0] = [];
        // It has credit; the plugin gave none; the similar one is weighed, too.
        assert_eq!(
            without_credit(&turns(&["a.step"]), &group(&["a.step", "a.other"])),
            nothing
        );
        assert_eq!(
            without_credit(&turns(&["a.step"]), &group(&["b.other"])),
            nothing
        );
        assert_eq!(
            without_credit(&turns(&["a.stp", "a.step"]), &group(&["a.step"])),
            nothing
        );
        // Another term is only worth a warning.
        let (turns, group) = (turns(&["a.matched"]), group(&["a.step"]));
        let found = without_credit(&turns, &group);
        assert_eq!((found.len(), found[0].misspelt()), (1, None));
    }
}
