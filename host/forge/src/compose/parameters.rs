//! Parameters, lookups and conditions that follow from entities: keys, fields of what is created.

use rlf_specification::model::{Binding, Effect, Insert, Lookup, Parameter, Precondition, Type};

use super::draft::{Draft, DraftEntity};
use super::error::TemplateError;

/// The inputs of an operation, as far as they are known.
#[derive(Default)]
pub(super) struct Inputs {
    pub(super) parameters: Vec<Parameter>,
    pub(super) bindings: Vec<Binding>,
    pub(super) preconditions: Vec<Precondition>,
}

impl Inputs {
    /// Adds the key of an entity as a parameter, and looks the entity up.
    pub(super) fn find(
        &mut self,
        draft: &Draft<'_>,
        drafted: &DraftEntity,
    ) -> Result<(), TemplateError> {
        let noun = draft.words.noun(&drafted.role)?;
        let key = &drafted.entity.key.name;
        self.parameters.push(Parameter {
            name: key.clone(),
            kind: Type::Reference(drafted.entity.name.clone()),
            description: format!("Number of the {}", noun.one),
            required: true,
            default: None,
            minimum: None,
            maximum: None,
            from_user: false,
        });
        self.bindings.push(Binding::Find(Lookup {
            name: drafted.entity.name.clone(),
            entity: drafted.entity.name.clone(),
            key: key.clone(),
            error: draft
                .unknown
                .replace("{noun}", &noun.one)
                .replace("{a_noun}", &noun.with_article())
                .replace("{key}", &format!("{{{key}}}")),
        }));
        Ok(())
    }

    fn require(&mut self, require: String, error: String) {
        self.preconditions.push(Precondition { require, error });
    }

    /// Adds what a new entity needs: its fields as parameters, unless they have an initial value.
    pub(super) fn create(
        &mut self,
        draft: &Draft<'_>,
        drafted: &DraftEntity,
    ) -> Result<Effect, TemplateError> {
        let entity = &drafted.entity;
        let collection = &entity.collection;
        let mut values = std::collections::BTreeMap::new();
        let mut unique = Vec::new();
        for field in &entity.fields {
            let name = &field.name;
            if let Some(initial) = drafted.initial.get(name) {
                values.insert(name.clone(), initial.clone());
                continue;
            }
            let is_text = field.kind == Type::Text && !field.optional;
            let value = if is_text {
                format!("{name}.trim()")
            } else {
                name.clone()
            };
            values.insert(name.clone(), value.clone());
            if let Type::Reference(target) = &field.kind {
                let target = draft.by_name(target)?;
                if *name != target.entity.key.name {
                    return Err(TemplateError::NotAKey {
                        field: name.clone(),
                        entity: entity.name.clone(),
                    });
                }
                self.find(draft, target)?;
                if field.unique {
                    let label = target.label.as_ref().map_or(name.clone(), |label| {
                        format!("{}.{label}", target.entity.name)
                    });
                    let thing = draft.words.noun(&drafted.role)?.with_article();
                    unique.push((
                        format!("!{collection}.exists(x, {collection}[x].{name} == {name})"),
                        format!("{{{label}}} has {thing} already"),
                    ));
                }
                continue;
            }
            self.parameters.push(Parameter {
                name: name.clone(),
                kind: field.kind.clone(),
                description: field.description.clone(),
                required: !field.optional,
                default: None,
                minimum: field.minimum.clone(),
                maximum: field.maximum.clone(),
                from_user: false,
            });
            if is_text {
                let shown = name.replace('_', " ");
                self.require(
                    format!("{name}.trim() != ''"),
                    format!("the {shown} is empty; give one"),
                );
            }
            if field.unique {
                unique.push((
                    format!("!{collection}.exists(x, {collection}[x].{name} == {value})"),
                    format!(
                        "there is {} with this {} already",
                        draft.words.noun(&drafted.role)?.with_article(),
                        name.replace('_', " ")
                    ),
                ));
            }
        }
        for (require, error) in unique {
            self.require(require, error);
        }
        self.gate(draft)?;
        Ok(Effect::Insert(Insert {
            entity: entity.name.clone(),
            values,
            key: None,
            name: Some(entity.key.name.clone()),
            when: None,
            each: None,
        }))
    }

    /// Adds the condition that persons are not suspended: suspended persons begin nothing new.
    fn gate(&mut self, draft: &Draft<'_>) -> Result<(), TemplateError> {
        if !draft.plan.flags.has("people", "suspend") {
            return Ok(());
        }
        let person = &draft.by_role("person")?.entity.name;
        if self.bindings.iter().any(|binding| binding.name() == person) {
            let error =
                format!("{{{person}.full_name}} is suspended; [reinstate_{person}] comes first");
            self.require(format!("{person}.active"), error);
        }
        Ok(())
    }
}
