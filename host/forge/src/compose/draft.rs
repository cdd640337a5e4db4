//! An environment while it is put together: its words, and the entities so far.

use std::collections::BTreeMap;

use rlf_specification::model::{Count, Entity, Field, Generator};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::archetype::Archetype;
use super::plan::Plan;
use super::words::Words;

/// An environment while it is put together.
pub(super) struct Draft<'a> {
    pub(super) plan: &'a Plan,
    pub(super) words: Words,
    pub(super) entities: Vec<Made>,
    /// Whether lists say the names of what they refer to.
    pub(super) labels: bool,
    /// The message about a key that does not exist.
    pub(super) unknown: &'a str,
}

/// An entity, and what templates say about it beyond the specification.
pub(super) struct Made {
    pub(super) role: String,
    pub(super) entity: Entity,
    pub(super) label: Option<String>,
    /// Expressions of fields of new ones.
    pub(super) initial: BTreeMap<String, String>,
    pub(super) counts: [Count; 4],
    pub(super) boundary: BTreeMap<String, Generator>,
}

impl Draft<'_> {
    pub(super) fn made(&self, role: &str) -> Result<&Made, String> {
        self.entities
            .iter()
            .find(|made| made.role == role)
            .ok_or_else(|| format!("there is no entity for the role `{role}`"))
    }

    /// The entity of this name.
    pub(super) fn named(&self, entity: &str) -> Result<&Made, String> {
        self.entities
            .iter()
            .find(|made| made.entity.name == entity)
            .ok_or_else(|| format!("there is no entity `{entity}`"))
    }

    /// Fills in a table and reads it.
    pub(super) fn read<T: DeserializeOwned>(&self, table: &Table) -> Result<T, String> {
        self.words
            .table(table)?
            .try_into()
            .map_err(|error| format!("{table}: {error}"))
    }

    /// Fills in the tables that are there, and reads them.
    pub(super) fn read_all<T: DeserializeOwned>(
        &self,
        archetype: &Archetype,
        tables: &[Table],
    ) -> Result<Vec<T>, String> {
        let mut made = Vec::new();
        for table in tables {
            let mut table = table.clone();
            if self.plan.flags.take(&archetype.name, &mut table) {
                made.push(self.read(&table)?);
            }
        }
        Ok(made)
    }

    /// Reads fields: what `initial` says of them goes to the entity.
    pub(super) fn add_fields(
        &self,
        archetype: &Archetype,
        tables: &[Table],
        made: &mut Made,
    ) -> Result<(), String> {
        for table in tables {
            let mut table = table.clone();
            if !self.plan.flags.take(&archetype.name, &mut table) {
                continue;
            }
            let initial = table.remove("initial");
            let field: Field = self.read(&table)?;
            if let Some(Value::String(initial)) = initial {
                made.initial
                    .insert(field.name.clone(), self.words.expression(&initial)?);
            }
            made.entity.fields.push(field);
        }
        Ok(())
    }

    pub(super) fn add_boundary(
        &self,
        generators: &BTreeMap<String, Value>,
        made: &mut Made,
    ) -> Result<(), String> {
        for (field, generator) in generators {
            if made.entity.fields.iter().any(|one| one.name == *field) {
                let generator = self.words.value(generator)?;
                let generator = generator
                    .try_into()
                    .map_err(|error| format!("{field}: {error}"))?;
                made.boundary.insert(field.clone(), generator);
            }
        }
        Ok(())
    }
}
