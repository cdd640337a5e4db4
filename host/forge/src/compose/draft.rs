//! An environment while it is put together: its words, and the entities so far.

use std::collections::BTreeMap;

use rlf_specification::model::{Count, Entity, Field, Generator};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::archetype::Archetype;
use super::error::TemplateError;
use super::plan::Plan;
use super::words::Words;

/// An environment while it is put together.
pub(super) struct Draft<'a> {
    pub(super) plan: &'a Plan,
    pub(super) words: Words,
    pub(super) entities: Vec<DraftEntity>,
    /// True if lists have the names of the entities that they refer to.
    pub(super) labels: bool,
    /// The message about a key that does not exist.
    pub(super) unknown: &'a str,
}

/// An entity, and what templates say about it beyond the specification.
pub(super) struct DraftEntity {
    pub(super) role: String,
    pub(super) entity: Entity,
    pub(super) label: Option<String>,
    /// Initial values of fields of new entities, as expressions.
    pub(super) initial: BTreeMap<String, String>,
    pub(super) counts: [Count; 4],
    pub(super) boundary: BTreeMap<String, Generator>,
}

impl Draft<'_> {
    /// The entity that has a role.
    pub(super) fn by_role(&self, role: &str) -> Result<&DraftEntity, TemplateError> {
        self.entities
            .iter()
            .find(|drafted| drafted.role == role)
            .ok_or_else(|| TemplateError::NoRole(role.to_owned()))
    }

    /// The entity of this name.
    pub(super) fn by_name(&self, entity: &str) -> Result<&DraftEntity, TemplateError> {
        self.entities
            .iter()
            .find(|drafted| drafted.entity.name == entity)
            .ok_or_else(|| TemplateError::NoEntity(entity.to_owned()))
    }

    /// Fills in a table and reads it.
    pub(super) fn read<T: DeserializeOwned>(&self, table: &Table) -> Result<T, TemplateError> {
        self.words
            .table(table)?
            .try_into()
            .map_err(|source| TemplateError::Unreadable {
                template: table.to_string(),
                source,
            })
    }

    /// Fills in the tables that are there, and reads them.
    pub(super) fn read_all<T: DeserializeOwned>(
        &self,
        archetype: &Archetype,
        tables: &[Table],
    ) -> Result<Vec<T>, TemplateError> {
        let mut read = Vec::new();
        for table in tables {
            let mut table = table.clone();
            if self.plan.flags.take(&archetype.name, &mut table) {
                read.push(self.read(&table)?);
            }
        }
        Ok(read)
    }

    /// Reads fields. An expression in `initial` goes to the entity.
    pub(super) fn add_fields(
        &self,
        archetype: &Archetype,
        tables: &[Table],
        drafted: &mut DraftEntity,
    ) -> Result<(), TemplateError> {
        for table in tables {
            let mut table = table.clone();
            if !self.plan.flags.take(&archetype.name, &mut table) {
                continue;
            }
            let initial = table.remove("initial");
            let field: Field = self.read(&table)?;
            if let Some(Value::String(initial)) = initial {
                drafted
                    .initial
                    .insert(field.name.clone(), self.words.expression(&initial)?);
            }
            drafted.entity.fields.push(field);
        }
        Ok(())
    }

    pub(super) fn add_boundary(
        &self,
        generators: &BTreeMap<String, Value>,
        drafted: &mut DraftEntity,
    ) -> Result<(), TemplateError> {
        for (field, generator) in generators {
            if drafted.entity.fields.iter().any(|one| one.name == *field) {
                let generator = self.words.value(generator)?;
                let generator =
                    generator
                        .try_into()
                        .map_err(|source| TemplateError::Unreadable {
                            template: field.clone(),
                            source,
                        })?;
                drafted.boundary.insert(field.clone(), generator);
            }
        }
        Ok(())
    }
}
