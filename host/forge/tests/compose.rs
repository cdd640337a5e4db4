//! Composed environments: sound, different from each other, the same for the same seed.

use std::collections::BTreeSet;
use std::convert::Infallible;

use proptest::prelude::*;
use rlf_forge::compose::figures::figures;
use rlf_forge::compose::{
    Composition, MIN_DISTANCE, Structure, TOOLS, Vocabulary, archetypes, compose, compose_with,
    domains,
};
use rlf_random::Key;
use rlf_specification::model::{Size, Specification};
use rlf_specification::{Format, Refusal, check, check_text, walk};

/// The promises of a composition of 85 environments.
fn keeps_its_promises(composition: &Composition) {
    let environments = &composition.environments;
    assert_eq!(environments.len(), 85);
    for environment in environments {
        let specification = &environment.specification;
        let name = &specification.name;
        assert!(TOOLS.contains(&specification.operations.len()), "{name}");
        assert_eq!(specification.scenarios.len(), 4, "{name}");
        let text = toml::to_string(specification).unwrap();
        let checked = check_text(&text, Format::Toml);
        assert!(
            checked.findings.is_empty(),
            "{name}: {}",
            checked.findings[0]
        );
        let program = checked.program.unwrap();
        assert_eq!(
            program.specification(),
            specification,
            "{name}: the file says something else"
        );
        for size in Size::ALL {
            // A seed that composing did not walk with.
            let mut state = program.open(size, 1_000_003).unwrap();
            for call in 0..40u64 {
                let key = Key::from_value(5).named(name).at(call);
                let operation = &specification.operations
                    [key.below(0, specification.operations.len() as u64) as usize];
                let arguments = walk::arguments(&program, &state, operation, key.at(1));
                if let Err(fault @ Refusal::Undone(_)) =
                    program.call(&mut state, &operation.name, &arguments)
                {
                    panic!("{name}: {} {arguments:?}: {fault}", operation.name);
                }
                assert_eq!(program.broken_rule(&state), None, "{name}");
            }
        }
    }
    for (index, one) in environments.iter().enumerate() {
        for other in &environments[..index] {
            assert_ne!(one.structure.hash, other.structure.hash);
            assert!(one.structure.distance(&other.structure) >= MIN_DISTANCE);
            assert_ne!(one.specification.name, other.specification.name);
        }
    }
    let figures = figures(composition);
    assert_eq!((figures.environments, figures.structures), (85, 85));
    assert_eq!(figures.domains.len(), 7);
    assert!(figures.archetypes.len() >= 20, "{:?}", figures.archetypes);
    let tools = figures.tools_each.unwrap();
    assert!(tools.least <= 6.0 && tools.most >= 18.0, "{tools:?}");
}

#[test]
fn a_seed_gives_85_sound_environments_of_85_structures() {
    keeps_its_promises(&compose(7, 85));
}

#[test]
fn another_seed_does_so_too() {
    keeps_its_promises(&compose(2_026, 85));
}

#[test]
fn a_larger_count_continues_a_smaller_one_and_another_seed_gives_others() {
    let text = |composition: &Composition| -> Vec<String> {
        let texts = composition
            .environments
            .iter()
            .map(|one| toml::to_string(&one.specification).unwrap());
        texts.collect()
    };
    let few = text(&compose(3, 3));
    let more = text(&compose(3, 6));
    assert_eq!(few, more[..3]);
    assert_eq!(more, text(&compose(3, 6)));
    assert_ne!(more, text(&compose(4, 6)));
}

/// The specification with other names, and its lists in another order.
fn renamed(specification: &Specification) -> Specification {
    let mut json = serde_json::to_string(specification).unwrap();
    // Longer names first, so that none is replaced within another.
    let mut names: Vec<String> = specification
        .entities
        .iter()
        .flat_map(|entity| [entity.name.clone(), entity.collection.clone()])
        .collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    for (index, name) in names.iter().enumerate() {
        let letters = [
            "qa", "qb", "qc", "qd", "qe", "qf", "qg", "qh", "qi", "qj", "qk", "ql", "qm", "qn",
            "qo", "qp",
        ];
        json = json.replace(
            name.as_str(),
            &format!("z{}z", letters[index % 16].repeat(1 + index / 16)),
        );
    }
    let mut renamed: Specification = serde_json::from_str(&json).unwrap();
    renamed.operations.reverse();
    renamed.invariants.reverse();
    for operation in &mut renamed.operations {
        "Something else.".clone_into(&mut operation.description);
        operation.result.fields.reverse();
    }
    renamed
}

#[test]
fn names_words_and_order_are_no_structure_and_everything_else_is() {
    for environment in compose(5, 4).environments {
        let specification = &environment.specification;
        assert_eq!(
            Structure::new(&renamed(specification)),
            environment.structure,
            "{}",
            specification.name
        );
        let mut other = specification.clone();
        other.operations.pop();
        assert_ne!(Structure::new(&other), environment.structure);
        let mut other = specification.clone();
        other.entities[0].fields[0].optional ^= true;
        assert_ne!(Structure::new(&other), environment.structure);
        let mut other = specification.clone();
        let guarded = other
            .operations
            .iter_mut()
            .find(|operation| !operation.preconditions.is_empty());
        guarded.unwrap().preconditions.clear();
        assert_ne!(Structure::new(&other), environment.structure);
    }
}

#[test]
fn the_library_has_seven_domains_of_twelve_businesses_and_more_than_twelve_archetypes() {
    let domains = domains();
    assert_eq!(
        domains.keys().copied().collect::<Vec<_>>(),
        [
            "academia",
            "commerce",
            "finance",
            "lifestyle",
            "office",
            "travel",
            "utilities"
        ]
    );
    assert!(
        domains.values().all(|businesses| businesses.len() >= 12),
        "{domains:?}"
    );
    let names: BTreeSet<&str> = domains.values().flatten().copied().collect();
    assert_eq!(names.len(), domains.values().map(Vec::len).sum::<usize>());
    assert!(archetypes().len() >= 12);
    assert!(
        archetypes()
            .iter()
            .all(|archetype| !archetype.description.is_empty())
    );
}

/// Read by eye when it was written down. `RLF_BLESS=1` writes it anew.
#[test]
fn an_environment_is_as_written_down() {
    let composition = compose(1, 1);
    let found = toml::to_string(&composition.environments[0].specification).unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/composed.toml");
    if std::env::var_os("RLF_BLESS").is_some() {
        std::fs::write(file, &found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(file).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn every_seed_composes_what_the_checks_accept(seed: u64) {
        for environment in compose(seed, 2).environments {
            prop_assert!(check(&environment.specification).findings.is_empty());
            prop_assert!(TOOLS.contains(&environment.specification.operations.len()));
        }
    }
}

#[test]
fn invented_words_belong_to_no_real_business_and_hardly_ever_to_two_environments() {
    let invented = || {
        let never = |_: &_| Ok::<(), Infallible>(());
        compose_with(5, 85, Vocabulary::Invented, never).unwrap()
    };
    let composition = invented();
    keeps_its_promises(&composition);
    let nouns = |composition: &Composition| -> Vec<String> {
        let environments = composition.environments.iter();
        let entities = environments.flat_map(|one| &one.specification.entities);
        entities.map(|entity| entity.name.clone()).collect()
    };
    let all = nouns(&composition);
    let different: BTreeSet<&String> = all.iter().collect();
    assert!(
        different.len() * 100 >= all.len() * 98,
        "{}",
        different.len()
    );
    let real = nouns(&compose(5, 85));
    assert!(real.iter().all(|noun| !different.contains(noun)));
    assert_eq!(nouns(&invented()), all);
}
