//! Businesses of seven domains, with their words.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// The domains of EnvFactory.
const FILES: [(&str, &str); 7] = [
    ("commerce", include_str!("vocabulary/commerce.toml")),
    ("finance", include_str!("vocabulary/finance.toml")),
    ("travel", include_str!("vocabulary/travel.toml")),
    ("office", include_str!("vocabulary/office.toml")),
    ("lifestyle", include_str!("vocabulary/lifestyle.toml")),
    ("academia", include_str!("vocabulary/academia.toml")),
    ("utilities", include_str!("vocabulary/utilities.toml")),
];

static LIBRARY: LazyLock<Vec<Business>> = LazyLock::new(|| {
    let read = |(name, text): &(&str, &str)| {
        let domain: Domain = toml::from_str(text).unwrap_or_else(|error| {
            panic!("vocabulary/{name}.toml, which is part of this program: {error}")
        });
        let Domain { words, businesses } = domain;
        let businesses = businesses.into_iter().map(move |mut business| {
            (*name).clone_into(&mut business.domain);
            for (list, content) in &words {
                business
                    .words
                    .entry(list.clone())
                    .or_insert_with(|| content.clone());
            }
            business
        });
        businesses.collect::<Vec<_>>()
    };
    FILES.iter().flat_map(read).collect()
});

static SHARED: LazyLock<Shared> = LazyLock::new(|| {
    toml::from_str(include_str!("vocabulary/shared.toml")).unwrap_or_else(|error| {
        panic!("vocabulary/shared.toml, which is part of this program: {error}")
    })
});

/// The domains, each with the names of its businesses.
pub fn domains() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut domains: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for business in businesses() {
        domains
            .entry(business.domain.as_str())
            .or_default()
            .push(business.name.as_str());
    }
    domains
}

pub(super) fn businesses() -> &'static [Business] {
    &LIBRARY
}

pub(super) fn shared() -> &'static Shared {
    &SHARED
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Domain {
    /// Lists that all businesses of the domain use unless they have their own.
    #[serde(default)]
    words: BTreeMap<String, Vec<String>>,
    businesses: Vec<Business>,
}

/// Words of every domain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shared {
    /// Beginnings of names, for further environments of the same business.
    pub(super) prefixes: Vec<String>,
    /// Verbs by meaning, as in names of operations and as in sentences: `look_up|Look up`.
    pub(super) verbs: BTreeMap<String, Vec<String>>,
    /// Messages about keys that do not exist. `{noun}`, `{a_noun}`, `{key}` and `{operation}` are filled in.
    pub(super) unknown: Vec<String>,
    pub(super) words: BTreeMap<String, Vec<String>>,
}

/// A concrete business: a bicycle rental, a travel desk, a physics department.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Business {
    #[serde(skip)]
    pub(super) domain: String,
    /// Name of its environment.
    pub(super) name: String,
    /// Its description with an article: `a bicycle rental`.
    pub(super) about: String,
    /// Archetypes that it always has.
    pub(super) core: Vec<String>,
    /// Archetypes that it can have.
    #[serde(default)]
    pub(super) more: Vec<String>,
    /// Nouns of roles: `bicycle|bicycles`.
    #[serde(default)]
    pub(super) nouns: BTreeMap<String, String>,
    /// Further fields of roles, such as `gears: integer 1 27 Number of gears`.
    #[serde(default)]
    pub(super) attributes: BTreeMap<String, Vec<String>>,
    /// Lists of words.
    #[serde(default)]
    pub(super) words: BTreeMap<String, Vec<String>>,
    /// Values of enumerations.
    #[serde(default)]
    pub(super) categories: Vec<String>,
    #[serde(default)]
    pub(super) units: Vec<String>,
    /// The lowest and the highest price.
    #[serde(default)]
    pub(super) prices: Option<(i64, i64)>,
    #[serde(default)]
    pub(super) currency: Option<String>,
}

impl Business {
    /// The name of its environment in a round through all businesses.
    pub(super) fn environment_name(&self, round: u64) -> String {
        let prefixes = &shared().prefixes;
        match round.checked_sub(1) {
            None => self.name.clone(),
            // The name's length shifts the beginnings, so that one round does not use one word only.
            Some(round) if round < prefixes.len() as u64 => {
                let shift = round as usize + self.name.len() + self.about.len();
                format!("{}{}", prefixes[shift % prefixes.len()], self.name)
            }
            Some(round) => format!("{}{}", self.name, round + 1),
        }
    }

    /// A list of words: of the business, its domain, or of all.
    pub(super) fn list(&self, name: &str) -> Option<&[String]> {
        self.words
            .get(name)
            .or_else(|| shared().words.get(name))
            .map(Vec::as_slice)
    }
}
