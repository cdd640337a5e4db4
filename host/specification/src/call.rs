//! Carrying out an operation: all of it, or nothing.

use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::expression::{Expr, Fault, MAX_ITEMS, MAX_STEPS, Machine, weigh};
use crate::model::Operation;
use crate::names::{NO_KEY, can_be_key};
use crate::program::{
    Change, CompiledBinding, CompiledEffect, CompiledOperation, Program, Refusal, broken_promise,
    within,
};
use crate::state::State;
use crate::state_json::read;
use crate::value::Value;

impl Program {
    /// Carries out an operation and returns its result. A refused operation has changed nothing.
    pub fn call(
        &self,
        state: &mut State,
        name: &str,
        arguments: &Map<String, Json>,
    ) -> Result<Json, Refusal> {
        let operations = &self.specification.operations;
        let position = operations.iter().position(|one| one.name == name);
        let position = position.ok_or_else(|| Refusal::NoOperation(name.to_owned()))?;
        let (operation, compiled) = (&operations[position], &self.operations[position]);
        let mut run = Run {
            program: self,
            state: state.clone(),
            locals: self.arguments(operation, compiled, arguments)?,
            steps: MAX_STEPS,
        };
        let result = run.all(operation, compiled)?;
        if !compiled.effects.is_empty() {
            if let Some(rule) = self.broken_rule(&run.state) {
                return Err(Refusal::Undone(format!("it breaks the rule {rule}")));
            }
            *state = run.state;
        }
        Ok(result)
    }

    fn arguments(
        &self,
        operation: &Operation,
        compiled: &CompiledOperation,
        given: &Map<String, Json>,
    ) -> Result<Vec<Value>, Refusal> {
        let known = |name: &String| operation.parameters.iter().any(|one| one.name == *name);
        if let Some(unknown) = given.keys().find(|name| !known(name)) {
            return Err(Refusal::Arguments(format!(
                "there is no parameter `{unknown}`"
            )));
        }
        let mut locals = Vec::with_capacity(operation.parameters.len() + 8);
        for (parameter, kind) in operation.parameters.iter().zip(&compiled.parameters) {
            let name = &parameter.name;
            let json = match given.get(name) {
                Some(json) => json,
                None if parameter.required => {
                    return Err(Refusal::Arguments(format!("`{name}` is missing")));
                }
                None => parameter.default.as_ref().unwrap_or(&Json::Null),
            };
            let value = read(&self.schema, kind, json)
                .map_err(|why| Refusal::Arguments(format!("`{name}`: {why}")))?;
            if !within(
                &value,
                parameter.minimum.as_ref(),
                parameter.maximum.as_ref(),
            ) {
                return Err(Refusal::Arguments(format!(
                    "`{name}` is outside of its limits"
                )));
            }
            locals.push(value);
        }
        Ok(locals)
    }
}

/// An operation that is being carried out on a copy of the state.
struct Run<'a> {
    program: &'a Program,
    state: State,
    locals: Vec<Value>,
    steps: u64,
}

impl Run<'_> {
    fn machine(&mut self) -> Machine<'_> {
        Machine {
            schema: &self.program.schema,
            state: &self.state,
            locals: &mut self.locals,
            steps: &mut self.steps,
        }
    }

    fn value(&mut self, expr: &Expr) -> Result<Value, Fault> {
        self.machine().value(expr)
    }

    /// A value that is written as JSON, where items that lists share are written every time.
    fn written(&mut self, expr: &Expr) -> Result<Value, Fault> {
        let value = self.value(expr)?;
        weigh(&value, &mut self.steps)?;
        Ok(value)
    }

    fn key(&mut self, expr: &Expr) -> Result<Arc<str>, Fault> {
        match self.value(expr)? {
            Value::Text(key) => Ok(key),
            _ => Err(Fault::Null),
        }
    }

    fn all(
        &mut self,
        operation: &Operation,
        compiled: &CompiledOperation,
    ) -> Result<Json, Refusal> {
        for binding in &compiled.bindings {
            let value = match binding {
                CompiledBinding::Compute(expr) => self.value(expr)?,
                CompiledBinding::Find { entity, key, error } => {
                    let key = self.key(key)?;
                    match self.state.tables[*entity].get(&key) {
                        Some(record) => Value::Record(Arc::clone(record)),
                        None => return Err(Refusal::Refused(error.show(&mut self.machine())?)),
                    }
                }
            };
            self.locals.push(value);
        }
        for (condition, error) in &compiled.preconditions {
            if !self.machine().truth(condition)? {
                return Err(Refusal::Refused(error.show(&mut self.machine())?));
            }
        }
        for effect in &compiled.effects {
            self.effect(effect)?;
        }
        for (promise, holds) in operation
            .postconditions
            .iter()
            .zip(&compiled.postconditions)
        {
            if !self.machine().truth(holds)? {
                return Err(Refusal::Undone(broken_promise(&promise.require)));
            }
        }
        let object = |run: &mut Self| -> Result<Json, Refusal> {
            let mut object = Map::new();
            for (field, expr) in operation.result.fields.iter().zip(&compiled.fields) {
                object.insert(field.name.clone(), run.written(expr)?.to_json());
            }
            Ok(Json::Object(object))
        };
        let Some(each) = &compiled.each else {
            return object(self);
        };
        let items = self.machine().list(each)?;
        let mut objects = Vec::with_capacity(items.len());
        for item in items.iter() {
            self.locals.push(item.clone());
            objects.push(object(self)?);
            self.locals.pop();
        }
        Ok(Json::Array(objects))
    }

    fn effect(&mut self, effect: &CompiledEffect) -> Result<(), Refusal> {
        let Some(each) = &effect.each else {
            return self.change(effect);
        };
        let items = self.machine().list(each)?;
        for item in items.iter() {
            self.locals.push(item.clone());
            self.change(effect)?;
            self.locals.pop();
        }
        Ok(())
    }

    /// The next generated key. Numbers of keys that exist are skipped.
    fn next_key(&mut self, entity: usize) -> Result<Arc<str>, Fault> {
        let prefix = &self.program.specification.entities[entity].key.prefix;
        loop {
            self.machine().work(1)?;
            let number = self.state.next[entity];
            self.state.next[entity] = number.checked_add(1).ok_or(Fault::Overflow)?;
            let key = format!("{prefix}{number}");
            if !self.state.tables[entity].contains_key(key.as_str()) {
                return Ok(key.into());
            }
        }
    }

    fn change(&mut self, effect: &CompiledEffect) -> Result<(), Refusal> {
        if let Some(when) = &effect.when
            && !self.machine().truth(when)?
        {
            return Ok(());
        }
        match &effect.change {
            Change::Insert {
                entity,
                key,
                values,
                named,
            } => {
                let key: Arc<str> = if let Some(key) = key {
                    self.key(key)?
                } else {
                    self.next_key(*entity)?
                };
                let mut record = vec![Value::Text(Arc::clone(&key))];
                for value in values {
                    record.push(self.written(value)?);
                }
                let table = Arc::make_mut(&mut self.state.tables[*entity]);
                if table.len() >= MAX_ITEMS {
                    return Err(Fault::TooLarge.into());
                }
                if !can_be_key(&key) {
                    return Err(Refusal::Refused(NO_KEY.to_owned()));
                }
                if table.contains_key(&key) {
                    let entity = &self.program.schema.entities[*entity].name;
                    return Err(Refusal::Undone(format!(
                        "there is a {entity} {key} already"
                    )));
                }
                table.insert(Arc::clone(&key), record.into());
                if *named {
                    self.locals.push(Value::Text(key));
                }
            }
            Change::Set {
                entity,
                key,
                values,
            } => {
                let key = self.key(key)?;
                let record = self.machine().row(*entity, &key)?;
                let mut changed = record.to_vec();
                for (field, value) in values {
                    changed[*field] = self.written(value)?;
                }
                let table = Arc::make_mut(&mut self.state.tables[*entity]);
                table.insert(key, changed.into());
            }
            Change::Delete { entity, key } => {
                let key = self.key(key)?;
                self.machine().row(*entity, &key)?;
                Arc::make_mut(&mut self.state.tables[*entity]).remove(&key);
            }
            Change::Assign { value, to } => {
                let to = self.written(to)?;
                self.state.values[*value] = to;
            }
        }
        Ok(())
    }
}
