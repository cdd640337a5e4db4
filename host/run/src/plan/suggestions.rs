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
#[derive(Clone)]
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
        now = with(&now, &best);
        for best in best {
            match chosen.iter_mut().find(|one| one.key == best.key) {
                Some(earlier) => *earlier = best,
                None => chosen.push(best),
            }
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

/// The change that saves most, or the same change of SFT and RL, if neither saves alone. Changes of what is trained come
/// last.
fn strongest(
    config: &RunConfig,
    processor: Processor,
    limit: u64,
    peak: impl Fn(&RunConfig) -> Result<u64, PolicyError>,
) -> Result<Option<Vec<Chosen>>, PolicyError> {
    let (mut of_work, mut of_training) = (Vec::new(), Vec::new());
    for change in changes(config, processor) {
        let (key, effect) = (change.key, change.effect);
        let variants = change.variants.into_iter().map(|variant| Chosen {
            key,
            effect,
            variant,
        });
        let list = if effect.is_none() {
            &mut of_work
        } else {
            &mut of_training
        };
        list.push(variants.collect::<Vec<_>>());
    }
    let alone = |list: &[Vec<Chosen>]| -> Vec<Vec<Vec<Chosen>>> {
        let alone = |variants: &Vec<Chosen>| variants.iter().map(|one| vec![one.clone()]).collect();
        list.iter().map(alone).collect()
    };
    let before = peak(config)?;
    for options in [
        alone(&of_work),
        in_both_phases(&of_work),
        alone(&of_training),
    ] {
        let mut best: Option<(u64, Vec<Chosen>)> = None;
        for option in options {
            for changes in option {
                let after = peak(&with(config, &changes))?;
                let saved = before.saturating_sub(after);
                if saved > best.as_ref().map_or(0, |(most, _)| *most) {
                    best = Some((saved, changes));
                }
                // A stronger variant is not needed.
                if after <= limit {
                    break;
                }
            }
        }
        if let Some((_, changes)) = best {
            return Ok(Some(changes));
        }
    }
    Ok(None)
}

/// Changes of a key of SFT together with those of the same key of RL.
fn in_both_phases(of_work: &[Vec<Chosen>]) -> Vec<Vec<Vec<Chosen>>> {
    let key = |variants: &[Chosen]| variants.first().map_or("", |one| one.key);
    let of_sft = (of_work.iter()).filter_map(|sft| Some((key(sft).strip_prefix("sft.")?, sft)));
    of_sft
        .filter_map(|(name, sft)| {
            let of_rl = |rl: &&Vec<Chosen>| key(rl).strip_prefix("rl.") == Some(name);
            let rl = of_work.iter().find(of_rl)?;
            let at =
                |variants: &[Chosen], index: usize| variants[index.min(variants.len() - 1)].clone();
            let together = (0..sft.len().max(rl.len())).map(|i| vec![at(sft, i), at(rl, i)]);
            Some(together.collect())
        })
        .collect()
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
