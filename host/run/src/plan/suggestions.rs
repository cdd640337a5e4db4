//! Chooses changes with which a run fits its machine.

use std::cmp::Reverse;
use std::fmt;

use rlf_policy::{PolicyError, Processor};

use super::changes::{Variant, changes};
use crate::config::RunConfig;

/// A change that saves memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// The key.
    pub key: &'static str,
    /// Its new value, as TOML.
    pub value: String,
    /// Bytes that it saves at the peak, after the changes before it.
    pub saves: u64,
    /// Effect on training, such as "trains without the KL term". None if only the work is cut differently.
    pub effect: Option<&'static str>,
}

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.key, self.value)
    }
}

/// A change that was chosen.
struct Chosen {
    key: &'static str,
    effect: Option<&'static str>,
    variant: Variant,
}

/// Chooses changes until the memory that `peak` says is at most `limit`, or nothing saves more: first the one that saves
/// most, then the one that saves most after it. Those that later ones make needless are left out. Returns the
/// configuration with all changes, too.
pub(super) fn suggest(
    config: &RunConfig,
    processor: Processor,
    limit: u64,
    peak: impl Fn(&RunConfig) -> Result<u64, PolicyError>,
) -> Result<(Vec<Suggestion>, RunConfig), PolicyError> {
    let mut chosen: Vec<Chosen> = Vec::new();
    let mut now = config.clone();
    while peak(&now)? > limit {
        let Some(best) = strongest(&now, processor, limit, &peak)? else {
            break;
        };
        now = best.variant.applied_to(&now);
        match chosen.iter_mut().find(|one| one.key == best.key) {
            Some(earlier) => *earlier = best,
            None => chosen.push(best),
        }
    }
    if peak(&now)? <= limit {
        leave_out_needless(&mut chosen, |chosen| {
            let config = with(config, chosen);
            Ok(config.check().is_ok() && peak(&config)? <= limit)
        })?;
    }
    in_order(config, chosen, peak)
}

/// The change that saves most. Changes of what is trained come last.
fn strongest(
    config: &RunConfig,
    processor: Processor,
    limit: u64,
    peak: impl Fn(&RunConfig) -> Result<u64, PolicyError>,
) -> Result<Option<Chosen>, PolicyError> {
    let before = peak(config)?;
    let mut best: Option<((bool, u64), Chosen)> = None;
    for change in changes(config, processor) {
        for variant in change.variants {
            let after = peak(&variant.applied_to(config))?;
            let rank = (change.effect.is_none(), before.saturating_sub(after));
            if rank.1 > 0 && best.as_ref().is_none_or(|(best, _)| rank > *best) {
                let (key, effect) = (change.key, change.effect);
                best = Some((
                    rank,
                    Chosen {
                        key,
                        effect,
                        variant,
                    },
                ));
            }
            // A stronger variant is not needed.
            if after <= limit {
                break;
            }
        }
    }
    Ok(best.map(|(_, chosen)| chosen))
}

/// Leaves out changes without which the others suffice: first those of what is trained, then the others, the last one first.
/// Their values stay as they are.
fn leave_out_needless(
    chosen: &mut Vec<Chosen>,
    suffices: impl Fn(&[Chosen]) -> Result<bool, PolicyError>,
) -> Result<(), PolicyError> {
    for of_training in [true, false] {
        for at in (0..chosen.len()).rev() {
            if chosen[at].effect.is_some() == of_training {
                let one = chosen.remove(at);
                if !suffices(chosen)? {
                    chosen.insert(at, one);
                }
            }
        }
    }
    Ok(())
}

/// The changes in the order of what they save, those of what is trained last. One that saves nothing yet comes after those
/// that let it save. Returns the configuration with all of them, too.
fn in_order(
    config: &RunConfig,
    mut chosen: Vec<Chosen>,
    peak: impl Fn(&RunConfig) -> Result<u64, PolicyError>,
) -> Result<(Vec<Suggestion>, RunConfig), PolicyError> {
    let (mut suggestions, mut before, mut now) = (Vec::new(), peak(config)?, config.clone());
    while !chosen.is_empty() {
        let mut best = None;
        for (at, one) in chosen.iter().enumerate() {
            let after = peak(&one.variant.applied_to(&now))?;
            let rank = (after < before, one.effect.is_none(), Reverse(after));
            if best.is_none_or(|(first, _)| rank > first) {
                best = Some((rank, at));
            }
        }
        let Some(((.., Reverse(after)), at)) = best else {
            break;
        };
        let Chosen {
            key,
            effect,
            variant,
        } = chosen.remove(at);
        now = variant.applied_to(&now);
        suggestions.push(Suggestion {
            key,
            value: variant.value,
            saves: before.saturating_sub(after),
            effect,
        });
        before = after;
    }
    Ok((suggestions, now))
}

/// The configuration with these changes.
fn with(config: &RunConfig, chosen: &[Chosen]) -> RunConfig {
    let changed = |config, one: &Chosen| one.variant.applied_to(&config);
    chosen.iter().fold(config.clone(), changed)
}
