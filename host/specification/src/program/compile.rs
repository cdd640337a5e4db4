//! Compiles the expressions of a specification, and reports those that do not compile.

use std::collections::BTreeMap;

use crate::expression::{Expr, Schema, Scope, Template, Trouble, ValueType};
use crate::finding::{Finding, Kind};
use crate::model::{Binding, Each, Effect, Generator, Operation, Specification};
use crate::names::{NO_KEY, can_be_key, suggestion};
use crate::program::{
    Change, CompiledBinding, CompiledEffect, CompiledGenerator, CompiledOperation, Program, Rule,
};
use crate::value::Value;

/// Compiles one specification.
pub(crate) struct Compiler<'a> {
    specification: &'a Specification,
    schema: &'a Schema,
    pub(crate) findings: Vec<Finding>,
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(specification: &'a Specification, schema: &'a Schema) -> Self {
        Self {
            specification,
            schema,
            findings: Vec::new(),
        }
    }

    /// Compiles everything. The program is only usable if no finding is an error.
    pub(crate) fn program(&mut self) -> Program {
        let specification = self.specification;
        let mut rules = Vec::new();
        for (index, invariant) in specification.invariants.iter().enumerate() {
            let place = format!("/invariants/{index}/require");
            let mut scope = Scope::new(self.schema);
            if let Some(holds) =
                self.compiled(&mut scope, &invariant.require, &ValueType::Boolean, &place)
            {
                let name = invariant.name.clone();
                rules.push(Rule { name, holds });
            }
        }
        let mut counted = vec![false; specification.entities.len()];
        for operation in &specification.operations {
            for effect in &operation.effects {
                if let Effect::Insert(insert) = effect
                    && insert.key.is_none()
                    && let Some(entity) = self.schema.entity(&insert.entity)
                {
                    counted[entity] = true;
                }
            }
        }
        let operations = specification.operations.iter().enumerate();
        let operations = operations
            .map(|(index, one)| self.operation(index, one))
            .collect();
        Program {
            specification: specification.clone(),
            schema: self.schema.clone(),
            operations,
            rules,
            counted,
            generators: self.generators(),
        }
    }

    fn report(&mut self, place: impl Into<String>, trouble: Trouble) {
        let Trouble {
            kind,
            message,
            mend,
        } = trouble;
        self.findings.push(Finding::new(kind, place, message, mend));
    }

    fn compiled(
        &mut self,
        scope: &mut Scope<'_>,
        source: &str,
        wanted: &ValueType,
        place: &str,
    ) -> Option<Expr> {
        match scope.compile_as(source, wanted) {
            Ok(expr) => Some(expr),
            Err(trouble) => {
                self.report(place, trouble);
                None
            }
        }
    }

    fn message(&mut self, scope: &mut Scope<'_>, source: &str, place: String) -> Template {
        if source.trim().is_empty() {
            self.findings.push(Finding::new(
                Kind::MissingDescription,
                place,
                "the message is empty",
                "say what is wrong and what to do instead",
            ));
            return Template::default();
        }
        Template::compile(source, scope).unwrap_or_else(|trouble| {
            self.report(place, trouble);
            Template::default()
        })
    }

    fn entity(&mut self, name: &str, place: String, kind: Kind) -> Option<usize> {
        let found = self.schema.entity(name);
        if found.is_none() {
            let known = self
                .schema
                .entities
                .iter()
                .map(|entity| entity.name.as_str());
            let mend = suggestion(name, known);
            let message = format!("there is no entity `{name}`");
            self.findings.push(Finding::new(kind, place, message, mend));
        }
        found
    }

    fn operation(&mut self, index: usize, operation: &Operation) -> CompiledOperation {
        let at = format!("/operations/{index}");
        let mut scope = Scope::new(self.schema);
        let mut compiled = CompiledOperation {
            parameters: Vec::new(),
            bindings: Vec::new(),
            preconditions: Vec::new(),
            effects: Vec::new(),
            postconditions: Vec::new(),
            each: None,
            fields: Vec::new(),
        };
        for parameter in &operation.parameters {
            let kind = self
                .schema
                .resolve(&parameter.kind, parameter.can_be_null());
            scope.declare(&parameter.name, kind.clone());
            compiled.parameters.push(kind);
        }
        for (number, binding) in operation.bindings.iter().enumerate() {
            let place = format!("{at}/bindings/{number}");
            let kind = self.binding(&mut scope, binding, &place, &mut compiled.bindings);
            scope.declare(binding.name(), kind);
        }
        for (number, precondition) in operation.preconditions.iter().enumerate() {
            let place = format!("{at}/preconditions/{number}");
            let require = &precondition.require;
            let holds = self.compiled(
                &mut scope,
                require,
                &ValueType::Boolean,
                &format!("{place}/require"),
            );
            // Before the condition is assumed: the message is shown where it is false.
            let error = self.message(&mut scope, &precondition.error, format!("{place}/error"));
            if let Some(holds) = holds {
                scope.assume(&holds);
                compiled.preconditions.push((holds, error));
            }
        }
        for (number, effect) in operation.effects.iter().enumerate() {
            let place = format!("{at}/effects/{number}");
            if let Some(effect) = self.effect(&mut scope, effect, &place) {
                compiled.effects.push(effect);
            }
            scope.forget_state();
        }
        for (number, postcondition) in operation.postconditions.iter().enumerate() {
            let place = format!("{at}/postconditions/{number}/require");
            let require = &postcondition.require;
            let holds = self.compiled(&mut scope, require, &ValueType::Boolean, &place);
            compiled.postconditions.extend(holds);
        }
        let result = &operation.result;
        if let Some(each) = &result.each {
            compiled.each = self.each(&mut scope, each, &format!("{at}/result/each"));
        }
        for (number, field) in result.fields.iter().enumerate() {
            let kind = self.schema.resolve(&field.kind, field.optional);
            let place = format!("{at}/result/fields/{number}/value");
            if let Some(expr) = self.compiled(&mut scope, &field.value, &kind, &place) {
                compiled.fields.push(expr);
            }
        }
        for (number, parameter) in operation.parameters.iter().enumerate() {
            if !scope.has_used(&parameter.name) {
                self.findings.push(Finding::new(
                    Kind::Unused,
                    format!("{at}/parameters/{number}"),
                    format!("`{}` is not used", parameter.name),
                    "use it, or leave it out",
                ));
            }
        }
        for (number, binding) in operation.bindings.iter().enumerate() {
            if let Binding::Compute { name, .. } = binding
                && !scope.has_used(name)
            {
                self.findings.push(Finding::new(
                    Kind::Unused,
                    format!("{at}/bindings/{number}"),
                    format!("`{name}` is not used"),
                    "use it in a condition, an effect or the result, or leave it out",
                ));
            }
        }
        compiled
    }

    /// Compiles a binding; returns its type.
    fn binding(
        &mut self,
        scope: &mut Scope<'_>,
        binding: &Binding,
        place: &str,
        bindings: &mut Vec<CompiledBinding>,
    ) -> ValueType {
        match binding {
            Binding::Find(lookup) => {
                let place = format!("{place}/find");
                let found = self.entity(
                    &lookup.entity,
                    format!("{place}/entity"),
                    Kind::UnknownReference,
                );
                let Some(entity) = found else {
                    return ValueType::Unknown;
                };
                let key = self.key(scope, &lookup.key, entity, true, &format!("{place}/key"));
                let error = self.message(scope, &lookup.error, format!("{place}/error"));
                if let Some(key) = key {
                    bindings.push(CompiledBinding::Find { entity, key, error });
                }
                ValueType::Record(entity)
            }
            Binding::Compute { value, .. } => match scope.compile(value) {
                Ok((_, ValueType::Collection(_))) => {
                    let trouble = Trouble {
                        kind: Kind::TypeMismatch,
                        message: format!("`{value}` is a whole collection"),
                        mend: "bind a list: `collection.filter(key, ..)`".to_owned(),
                    };
                    self.report(format!("{place}/compute/value"), trouble);
                    ValueType::Unknown
                }
                Ok((expr, kind)) => {
                    bindings.push(CompiledBinding::Compute(expr));
                    kind
                }
                Err(trouble) => {
                    self.report(format!("{place}/compute/value"), trouble);
                    ValueType::Unknown
                }
            },
        }
    }

    /// Compiles the key of an entity. A text can be one where it is looked up or new.
    fn key(
        &mut self,
        scope: &mut Scope<'_>,
        source: &str,
        entity: usize,
        text_too: bool,
        place: &str,
    ) -> Option<Expr> {
        let wanted = ValueType::Key(entity);
        if text_too && let Ok((expr, ValueType::Text)) = scope.compile(source) {
            return Some(expr);
        }
        self.compiled(scope, source, &wanted, place)
    }

    fn each(&mut self, scope: &mut Scope<'_>, each: &Each, place: &str) -> Option<Expr> {
        let (expr, kind) = match scope.compile(&each.of) {
            Ok((expr, ValueType::List(item))) => (Some(expr), *item),
            Ok((expr, ValueType::Collection(entity))) => (Some(expr), ValueType::Key(entity)),
            Ok((_, other)) => {
                let trouble = Trouble {
                    kind: Kind::TypeMismatch,
                    message: format!(
                        "`{}` is {}, expected a list",
                        each.of,
                        self.schema.shown(&other)
                    ),
                    mend: "go through a list or a collection".to_owned(),
                };
                self.report(format!("{place}/of"), trouble);
                (None, ValueType::Unknown)
            }
            Err(trouble) => {
                self.report(format!("{place}/of"), trouble);
                (None, ValueType::Unknown)
            }
        };
        if let Some(message) = crate::names::problem(&each.name) {
            let finding =
                Finding::new(Kind::BadName, format!("{place}/name"), message, "rename it");
            self.findings.push(finding);
        }
        if scope.has_local(&each.name) {
            self.findings.push(Finding::new(
                Kind::DuplicateName,
                format!("{place}/name"),
                format!("`{}` is a name already", each.name),
                "use another name",
            ));
        }
        scope.declare(&each.name, kind);
        expr
    }

    fn effect(
        &mut self,
        scope: &mut Scope<'_>,
        effect: &Effect,
        place: &str,
    ) -> Option<CompiledEffect> {
        let (which, each, when) = match effect {
            Effect::Insert(effect) => ("insert", &effect.each, &effect.when),
            Effect::Set(effect) => ("set", &effect.each, &effect.when),
            Effect::Delete(effect) => ("delete", &effect.each, &effect.when),
            Effect::Assign(effect) => ("assign", &None, &effect.when),
        };
        let place = format!("{place}/{which}");
        let mut inner = scope.clone();
        let repeats = each
            .as_ref()
            .map(|each| self.each(&mut inner, each, &format!("{place}/each")));
        if each.is_some() {
            // An earlier repetition has changed the state.
            inner.forget_state();
        }
        let when = when.as_ref().map(|when| {
            let holds = self.compiled(
                &mut inner,
                when,
                &ValueType::Boolean,
                &format!("{place}/when"),
            );
            if let Some(holds) = &holds {
                inner.assume(holds);
            }
            holds
        });
        let change = self.change(&mut inner, effect, &place);
        scope.keep_used(&inner);
        if let Effect::Insert(insert) = effect
            && let Some(name) = &insert.name
        {
            if each.is_some() || when.is_some() {
                self.findings.push(Finding::new(
                    Kind::BadEffect,
                    format!("{place}/name"),
                    "the new key has a name, although there may be none or several",
                    "leave out `name`, or `when` and `each`",
                ));
            }
            let kind = self
                .schema
                .entity(&insert.entity)
                .map_or(ValueType::Unknown, ValueType::Key);
            scope.declare(name, kind);
        }
        Some(CompiledEffect {
            each: repeats.map_or(Some(None), |each| each.map(Some))?,
            when: when.map_or(Some(None), |when| when.map(Some))?,
            change: change?,
        })
    }

    fn change(&mut self, scope: &mut Scope<'_>, effect: &Effect, place: &str) -> Option<Change> {
        let entity_place = format!("{place}/entity");
        let key_place = format!("{place}/key");
        match effect {
            Effect::Insert(insert) => {
                let entity = self.entity(&insert.entity, entity_place, Kind::BadEffect)?;
                let key = match &insert.key {
                    Some(key) => Some(self.key(scope, key, entity, true, &key_place)?),
                    None => None,
                };
                if let Some(Expr::Literal(Value::Text(text))) = &key
                    && !can_be_key(text)
                {
                    self.findings.push(Finding::new(
                        Kind::BadEffect,
                        key_place,
                        NO_KEY,
                        "use another text, or leave the key out, so that one is generated",
                    ));
                }
                let given = self.values(scope, entity, &insert.values, place);
                let mut values = Vec::new();
                for (position, (name, kind)) in self.schema.entities[entity]
                    .fields
                    .iter()
                    .enumerate()
                    .skip(1)
                {
                    let value = given.iter().find(|(field, _)| *field == position);
                    match (value, kind) {
                        (Some((_, value)), _) => values.push(value.clone()),
                        (None, ValueType::Optional(_)) => values.push(Expr::Literal(Value::Null)),
                        (None, _) if insert.values.contains_key(name) => {}
                        (None, _) => self.findings.push(Finding::new(
                            Kind::BadEffect,
                            format!("{place}/values"),
                            format!("a new {} has no `{name}`", insert.entity),
                            "give it a value",
                        )),
                    }
                }
                let named = insert.name.is_some();
                Some(Change::Insert {
                    entity,
                    key,
                    values,
                    named,
                })
            }
            Effect::Set(update) => {
                let entity = self.entity(&update.entity, entity_place, Kind::BadEffect)?;
                let key = self.key(scope, &update.key, entity, false, &key_place);
                let values = self.values(scope, entity, &update.values, place);
                if update.values.is_empty() {
                    self.findings.push(Finding::new(
                        Kind::BadEffect,
                        format!("{place}/values"),
                        "the effect changes no field",
                        "name the fields that change",
                    ));
                }
                Some(Change::Set {
                    entity,
                    key: key?,
                    values,
                })
            }
            Effect::Delete(delete) => {
                let entity = self.entity(&delete.entity, entity_place, Kind::BadEffect)?;
                let key = self.key(scope, &delete.key, entity, false, &key_place)?;
                Some(Change::Delete { entity, key })
            }
            Effect::Assign(assign) => {
                let values = &self.schema.values;
                let Some(value) = values.iter().position(|(name, _)| *name == assign.name) else {
                    self.findings.push(Finding::new(
                        Kind::BadEffect,
                        format!("{place}/name"),
                        format!("there is no single value `{}`", assign.name),
                        suggestion(&assign.name, values.iter().map(|(name, _)| name.as_str())),
                    ));
                    return None;
                };
                let kind = values[value].1.clone();
                let to = self.compiled(scope, &assign.value, &kind, &format!("{place}/value"))?;
                Some(Change::Assign { value, to })
            }
        }
    }

    fn values(
        &mut self,
        scope: &mut Scope<'_>,
        entity: usize,
        given: &BTreeMap<String, String>,
        place: &str,
    ) -> Vec<(usize, Expr)> {
        let shape = &self.schema.entities[entity];
        let mut values = Vec::new();
        for (name, source) in given {
            let place = format!("{place}/values/{name}");
            let found = shape
                .fields
                .iter()
                .skip(1)
                .position(|(field, _)| field == name);
            let Some(position) = found else {
                self.findings.push(Finding::new(
                    Kind::BadEffect,
                    place,
                    format!("{} has no field `{name}` that can be set", shape.name),
                    suggestion(
                        name,
                        shape.fields.iter().skip(1).map(|(field, _)| field.as_str()),
                    ),
                ));
                continue;
            };
            let kind = &shape.fields[position + 1].1;
            if let Some(expr) = self.compiled(scope, source, kind, &place) {
                values.push((position + 1, expr));
            }
        }
        values
    }

    /// Compiles the expressions of generators. Those of an entity see its earlier fields.
    fn generators(&mut self) -> Vec<CompiledGenerator> {
        let specification = self.specification;
        let mut generators = Vec::new();
        for (number, entity) in specification.entities.iter().enumerate() {
            let mut scope = Scope::new(self.schema);
            scope.declare(&entity.key.name, ValueType::Key(number));
            for (position, field) in entity.fields.iter().enumerate() {
                let kind = self.schema.resolve(&field.kind, field.optional);
                let own = field.generate.iter().map(|generator| {
                    (
                        generator,
                        format!("/entities/{number}/fields/{position}/generate"),
                    )
                });
                let name = format!("{}.{}", entity.name, field.name);
                let others =
                    specification
                        .scenarios
                        .iter()
                        .enumerate()
                        .filter_map(|(index, scenario)| {
                            let generator = scenario.generate.get(&name)?;
                            Some((generator, format!("/scenarios/{index}/generate/{name}")))
                        });
                for (generator, place) in own.chain(others).collect::<Vec<_>>() {
                    if let Generator::Expression(source) = generator
                        && let Some(expr) = self.compiled(&mut scope, source, &kind, &place)
                    {
                        generators.push(CompiledGenerator {
                            entity: number,
                            field: position,
                            source: source.clone(),
                            expr,
                        });
                    }
                }
                scope.declare(&field.name, kind);
            }
        }
        generators
    }
}
