//! Deals the real countries into training, validation and test.
//!
//! Held-out questions hop from a country to its neighbour, and no hop may leave the split. So countries are dealt in
//! small groups: pairs of neighbours, and countries whose names contain one another (`guinea` and `equatorial
//! guinea`), because a model trained on one has half seen the other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rlf_dialogue::split::Split;

use super::draws::Draws;
use super::facts::Country;

/// Assigns a split to each country, in the order of `countries`. `shares` are those of validation and test.
pub(crate) fn assign_splits(countries: &[Country], seed: u64, shares: [f64; 2]) -> Vec<Split> {
    let order = shuffled(countries, seed);
    let mut group: Vec<usize> = (0..countries.len()).collect();
    pair_neighbours(countries, &order, &mut group);
    join_name_families(countries, &mut group);

    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &country in &order {
        members.entry(group[country]).or_default().push(country);
    }
    // Large groups first, while every split still has room for them; then as shuffled.
    let mut groups: Vec<Vec<usize>> = members.into_values().collect();
    let rank: BTreeMap<usize, usize> = order
        .iter()
        .enumerate()
        .map(|(rank, &country)| (country, rank))
        .collect();
    groups.sort_by_key(|group| (Reverse(group.len()), rank[&group[0]]));

    // Each group goes to the split that lacks the largest part of its share.
    let due = [1.0 - shares[0] - shares[1], shares[0], shares[1]]
        .map(|share| share * countries.len() as f64);
    let mut missing = due;
    let mut splits = vec![Split::Train; countries.len()];
    for group in groups {
        let part = |split: usize| {
            if due[split] > 0.0 {
                missing[split] / due[split]
            } else {
                f64::NEG_INFINITY
            }
        };
        let neediest = (0..3)
            .max_by(|&a, &b| part(a).total_cmp(&part(b)))
            .unwrap_or(0);
        missing[neediest] -= group.len() as f64;
        for country in group {
            splits[country] = Split::ALL[neediest];
        }
    }
    splits
}

/// For each country the one land neighbour of the same split that the table names, if it has any.
pub(crate) fn neighbours(countries: &[Country], splits: &[Split], seed: u64) -> Vec<Option<usize>> {
    let position: BTreeMap<&str, usize> = countries
        .iter()
        .enumerate()
        .map(|(index, country)| (country.name.as_str(), index))
        .collect();
    let choose = |(index, country): (usize, &Country)| {
        let same: Vec<usize> = (country
            .neighbours
            .iter()
            .filter_map(|name| position.get(name.as_str())))
        .copied()
        .filter(|&neighbour| splits[neighbour] == splits[index])
        .collect();
        let mut draws = Draws::new(seed, "facts/neighbour", index as u64);
        (!same.is_empty()).then(|| *draws.pick(&same))
    };
    countries.iter().enumerate().map(choose).collect()
}

fn shuffled(countries: &[Country], seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..countries.len()).collect();
    order.sort_by_cached_key(|&country| Draws::new(seed, &countries[country].name, 0).bits());
    order
}

fn pair_neighbours(countries: &[Country], order: &[usize], group: &mut [usize]) {
    let mut paired = vec![false; countries.len()];
    for &country in order {
        let is_free = |&&other: &&usize| {
            !paired[other]
                && countries[country]
                    .neighbours
                    .contains(&countries[other].name)
        };
        if paired[country] {
            continue;
        }
        if let Some(&partner) = order.iter().find(is_free) {
            (paired[country], paired[partner]) = (true, true);
            group[partner] = group[country];
        }
    }
}

fn join_name_families(countries: &[Country], group: &mut [usize]) {
    for inner in 0..countries.len() {
        for outer in 0..countries.len() {
            let (a, b) = (group[inner], group[outer]);
            let said = |text: &str| contains_words(text, &countries[inner].name);
            if a != b && (said(&countries[outer].name) || said(&countries[outer].capital)) {
                group
                    .iter_mut()
                    .filter(|group| **group == b)
                    .for_each(|group| *group = a);
            }
        }
    }
}

/// True if `text` contains the words of `name`, side by side.
pub(crate) fn contains_words(text: &str, name: &str) -> bool {
    let words: Vec<&str> = words(text).collect();
    let name: Vec<&str> = self::words(name).collect();
    !name.is_empty() && words.windows(name.len()).any(|window| window == name)
}

/// The runs of letters in a text.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphabetic())
        .filter(|word| !word.is_empty())
}

/// The real names and capitals of one split.
pub(crate) fn names(countries: &[Country], splits: &[Split], wanted: Split) -> BTreeSet<String> {
    let mine = countries
        .iter()
        .zip(splits)
        .filter(|(_, split)| **split == wanted);
    mine.flat_map(|(country, _)| [country.name.clone(), country.capital.clone()])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::countries::facts::real_countries;

    #[test]
    fn the_splits_have_their_shares() {
        let countries = real_countries().unwrap();
        for seed in 0..20 {
            let splits = assign_splits(&countries, seed, [0.15, 0.25]);
            let count = |split| splits.iter().filter(|s| **s == split).count() as i64;
            assert!(
                (count(Split::Train) - 101).abs() <= 3,
                "{}",
                count(Split::Train)
            );
            assert!(
                (count(Split::Validation) - 25).abs() <= 3,
                "{}",
                count(Split::Validation)
            );
            assert!(
                (count(Split::Test) - 42).abs() <= 3,
                "{}",
                count(Split::Test)
            );
        }
    }

    #[test]
    fn hops_stay_in_the_split_and_most_countries_have_one() {
        let countries = real_countries().unwrap();
        for seed in 0..20 {
            let splits = assign_splits(&countries, seed, [0.15, 0.25]);
            let neighbours = neighbours(&countries, &splits, seed);
            for (index, neighbour) in neighbours.iter().enumerate() {
                assert!(neighbour.is_none_or(|neighbour| splits[neighbour] == splits[index]));
            }
            for split in Split::ALL {
                let mine: Vec<_> = neighbours
                    .iter()
                    .zip(&splits)
                    .filter(|(_, s)| **s == split)
                    .collect();
                let with = mine
                    .iter()
                    .filter(|(neighbour, _)| neighbour.is_some())
                    .count();
                assert!(with * 2 > mine.len(), "{split:?}: {with} of {}", mine.len());
            }
        }
    }

    #[test]
    fn no_name_of_one_split_is_part_of_a_name_of_another() {
        let countries = real_countries().unwrap();
        for seed in 0..20 {
            let splits = assign_splits(&countries, seed, [0.15, 0.25]);
            for held in [Split::Validation, Split::Test] {
                for name in names(&countries, &splits, held) {
                    for other in Split::ALL.into_iter().filter(|other| *other != held) {
                        let said = names(&countries, &splits, other);
                        let found = said.iter().find(|text| contains_words(text, &name));
                        assert_eq!(found, None, "`{name}` of {held:?} in {other:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn another_seed_deals_otherwise() {
        let countries = real_countries().unwrap();
        assert_eq!(
            assign_splits(&countries, 3, [0.15, 0.25]),
            assign_splits(&countries, 3, [0.15, 0.25])
        );
        assert_ne!(
            assign_splits(&countries, 3, [0.15, 0.25]),
            assign_splits(&countries, 4, [0.15, 0.25])
        );
    }
}
