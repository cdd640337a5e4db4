//! The library of archetypes: files of entities, operations and options.
//!
//! Texts of an archetype have placeholders, which [`super::words`] explains. Anything with `if` is there only if all its
//! terms hold: `price` (an option of the archetype), `@stock` (another archetype), `@catalogue.price` (an option of
//! another), or `!` before one of these.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use rlf_specification::model::Count;
use serde::Deserialize;
use toml::{Table, Value};

/// The files, in an order in which roles are made before they are used.
const FILES: [(&str, &str); 24] = [
    ("people", include_str!("archetypes/people.toml")),
    ("catalogue", include_str!("archetypes/catalogue.toml")),
    ("stock", include_str!("archetypes/stock.toml")),
    ("booking", include_str!("archetypes/booking.toml")),
    ("loan", include_str!("archetypes/loan.toml")),
    ("orders", include_str!("archetypes/orders.toml")),
    ("ledger", include_str!("archetypes/ledger.toml")),
    ("calendar", include_str!("archetypes/calendar.toml")),
    ("messages", include_str!("archetypes/messages.toml")),
    ("tickets", include_str!("archetypes/tickets.toml")),
    ("membership", include_str!("archetypes/membership.toml")),
    ("routes", include_str!("archetypes/routes.toml")),
    ("documents", include_str!("archetypes/documents.toml")),
    ("measurements", include_str!("archetypes/measurements.toml")),
    ("enrolment", include_str!("archetypes/enrolment.toml")),
    ("tasks", include_str!("archetypes/tasks.toml")),
    ("reviews", include_str!("archetypes/reviews.toml")),
    ("vouchers", include_str!("archetypes/vouchers.toml")),
    ("parcels", include_str!("archetypes/parcels.toml")),
    ("devices", include_str!("archetypes/devices.toml")),
    ("budget", include_str!("archetypes/budget.toml")),
    ("queue", include_str!("archetypes/queue.toml")),
    ("maintenance", include_str!("archetypes/maintenance.toml")),
    ("invoices", include_str!("archetypes/invoices.toml")),
];

static LIBRARY: LazyLock<Vec<Archetype>> = LazyLock::new(|| {
    let read = |(name, text): &(&str, &str)| {
        let mut archetype: Archetype = toml::from_str(text).unwrap_or_else(|error| {
            panic!("archetypes/{name}.toml, which is part of this program: {error}")
        });
        (*name).clone_into(&mut archetype.name);
        archetype
    };
    FILES.iter().map(read).collect()
});

/// The archetypes, in an order in which roles are made before they are used.
pub fn archetypes() -> &'static [Archetype] {
    &LIBRARY
}

/// A pattern of environments: a booking, a ledger, a calendar.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archetype {
    /// Its name: that of the file.
    #[serde(skip)]
    pub name: String,
    /// Its description.
    pub description: String,
    /// Roles that other archetypes make.
    #[serde(default)]
    pub(super) needs: Vec<String>,
    /// Options of other archetypes that it cannot do without.
    #[serde(default)]
    pub(super) requires: Vec<String>,
    /// True if the state has today's date.
    #[serde(default)]
    pub(super) today: bool,
    /// Condition under which the state has today's date.
    pub(super) today_if: Option<String>,
    /// Parts that an environment can have or lack.
    #[serde(default)]
    pub(super) options: Vec<String>,
    /// Numbers that are drawn for each environment.
    #[serde(default)]
    pub(super) limits: BTreeMap<String, Vec<i64>>,
    /// The roles that it makes, with the nouns that they have unless a business has better ones: `booking|bookings`.
    #[serde(default)]
    pub(super) nouns: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) entities: Vec<EntityTemplate>,
    #[serde(default)]
    pub(super) extend: Vec<Extension>,
    #[serde(default)]
    pub(super) invariants: Vec<InvariantTemplate>,
    /// Parts of expressions that depend on options.
    #[serde(default)]
    pub(super) expressions: BTreeMap<String, Vec<Alternative>>,
    #[serde(default)]
    pub(super) operations: Vec<OperationTemplate>,
}

/// An entity of an archetype.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EntityTemplate {
    #[serde(default, rename = "if")]
    pub(super) condition: String,
    pub(super) role: String,
    /// The field by which people know an entity, such as its name.
    pub(super) label: Option<String>,
    pub(super) description: String,
    /// Numbers of entities in the scenarios simple, medium, complex and boundary.
    pub(super) counts: [Count; 4],
    pub(super) fields: Vec<Table>,
    /// Generators of fields in the scenario boundary.
    #[serde(default)]
    pub(super) boundary: BTreeMap<String, Value>,
}

/// Fields that an archetype adds to an entity of another.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Extension {
    pub(super) role: String,
    pub(super) fields: Vec<Table>,
    #[serde(default)]
    pub(super) boundary: BTreeMap<String, Value>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InvariantTemplate {
    #[serde(default, rename = "if")]
    pub(super) condition: String,
    pub(super) name: String,
    pub(super) require: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Alternative {
    #[serde(default, rename = "if")]
    pub(super) condition: String,
    pub(super) value: String,
}

/// An operation of an archetype. Its parameters are the keys of `by`, the fields of what it creates, and its own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OperationTemplate {
    #[serde(default, rename = "if")]
    pub(super) condition: String,
    pub(super) name: String,
    pub(super) description: String,
    /// Roles whose keys are parameters. The entities are bound to the roles' nouns.
    #[serde(default)]
    pub(super) by: Vec<String>,
    #[serde(default)]
    pub(super) parameters: Vec<Table>,
    #[serde(default)]
    pub(super) bindings: Vec<Table>,
    #[serde(default)]
    pub(super) preconditions: Vec<PreconditionTemplate>,
    /// Inserts an entity. Fields without `initial` are parameters.
    pub(super) create: Option<String>,
    /// Inserts an entity with these values; the others are those of `initial`.
    pub(super) create_as: Option<Change>,
    /// Effects before the following ones.
    #[serde(default)]
    pub(super) effects: Vec<Table>,
    /// Changes fields of an entity of `by`. Fields that an environment lacks are left out.
    pub(super) update: Option<Change>,
    /// Removes an entity of `by`.
    pub(super) delete: Option<String>,
    /// Returns an entity of `by`.
    pub(super) get: Option<String>,
    /// Returns all entities for which a condition on `x` holds.
    pub(super) list: Option<ListTemplate>,
    /// Fields of what was created or changed that are returned too.
    #[serde(default)]
    pub(super) returns: Vec<String>,
    /// Further fields of the result.
    #[serde(default)]
    pub(super) fields: Vec<Table>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PreconditionTemplate {
    #[serde(default, rename = "if")]
    pub(super) condition: String,
    pub(super) require: String,
    pub(super) error: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    pub(super) role: String,
    pub(super) values: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListTemplate {
    pub(super) role: String,
    #[serde(rename = "where")]
    pub(super) condition: String,
    /// Further conditions.
    #[serde(default)]
    pub(super) and: Vec<Further>,
    /// The option with which the list says only what identifies each entity.
    pub(super) brief: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Further {
    #[serde(default, rename = "if")]
    pub(super) condition: String,
    #[serde(rename = "where")]
    pub(super) holds: String,
}

/// The parts of an environment: archetypes (`stock`) and options (`stock.low`).
#[derive(Debug, Clone, Default)]
pub(super) struct Flags(pub(super) BTreeSet<String>);

impl Flags {
    pub(super) fn has(&self, archetype: &str, option: &str) -> bool {
        self.0.contains(&format!("{archetype}.{option}"))
    }

    /// True if all terms of an `if` hold in an archetype.
    pub(super) fn hold(&self, archetype: &str, condition: &str) -> bool {
        condition.split_whitespace().all(|term| {
            let (wanted, term) = term
                .strip_prefix('!')
                .map_or((true, term), |term| (false, term));
            let found = match term.strip_prefix('@') {
                Some(other) => self.0.contains(other),
                None => self.has(archetype, term),
            };
            found == wanted
        })
    }

    /// Takes `if` out of a table, and says whether it holds.
    pub(super) fn take(&self, archetype: &str, table: &mut Table) -> bool {
        match table.remove("if") {
            Some(Value::String(condition)) => self.hold(archetype, &condition),
            _ => true,
        }
    }
}
