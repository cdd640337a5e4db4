//! Operations as methods of the state's class, and their FastMCP wrappers.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::expression::Names;
use super::{annotation, docstring, literal};
use crate::model::{Effect, Operation, Type};
use crate::program::{
    Change, CompiledBinding, CompiledEffect, CompiledOperation, Program, broken_promise,
};
use crate::state_json::next_name;

impl Program {
    pub(super) fn method(
        &self,
        operation: &Operation,
        compiled: &CompiledOperation,
        out: &mut String,
    ) {
        let mut names = Names::new(&self.schema);
        let mut parameters = vec!["self".to_owned()];
        for parameter in &operation.parameters {
            let kind = annotation(&parameter.kind, parameter.can_be_null());
            parameters.push(format!("{}: {kind}", parameter.name));
            names.locals.push(parameter.name.clone());
        }
        let kind = if compiled.each.is_some() {
            "List[dict]"
        } else {
            "dict"
        };
        let _ = writeln!(
            out,
            "\n    def {}({}) -> {kind}:",
            operation.name,
            parameters.join(", ")
        );
        for (binding, code) in operation.bindings.iter().zip(&compiled.bindings) {
            let name = binding.name();
            match code {
                CompiledBinding::Compute(expr) => {
                    let _ = writeln!(out, "        {name} = {}", names.python(expr));
                }
                CompiledBinding::Find { entity, key, error } => {
                    let (collection, key) = (names.collection(*entity), names.python(key));
                    let error = names.message(error);
                    let _ = writeln!(
                        out,
                        "        _key = {key}\n        if _key not in {collection}:"
                    );
                    let _ = writeln!(out, "            raise ValueError({error})");
                    let _ = writeln!(out, "        {name} = {collection}[_key]");
                }
            }
            names.locals.push(name.to_owned());
        }
        for (condition, error) in &compiled.preconditions {
            let (condition, error) = (names.python(condition), names.message(error));
            let _ = writeln!(
                out,
                "        if not {condition}:\n            raise ValueError({error})"
            );
        }
        if compiled.effects.is_empty() {
            let result = Self::result(operation, compiled, &mut names);
            let _ = writeln!(out, "        return {result}");
            return;
        }
        let name = &self.specification.name;
        let _ = writeln!(
            out,
            "        _before = self.state\n        self.state = {name}Scenario(**_before.model_dump())\n        try:"
        );
        for (effect, code) in operation.effects.iter().zip(&compiled.effects) {
            self.effect(effect, code, &mut names, out);
        }
        for (promise, code) in operation
            .postconditions
            .iter()
            .zip(&compiled.postconditions)
        {
            let message = literal(&Json::from(broken_promise(&promise.require)));
            let holds = names.python(code);
            let _ = writeln!(
                out,
                "            if not {holds}:\n                raise ValueError(_UNDONE + {message})"
            );
        }
        let result = Self::result(operation, compiled, &mut names);
        let _ = writeln!(
            out,
            "            _result = {result}\n            self._check()\n        except Exception:\n            \
             self.state = _before\n            raise\n        return _result"
        );
    }

    fn result(
        operation: &Operation,
        compiled: &CompiledOperation,
        names: &mut Names<'_>,
    ) -> String {
        let each = compiled.each.as_ref().map(|each| names.python(each));
        let name = operation.result.each.as_ref().map(|each| each.name.clone());
        names.locals.extend(name.clone());
        let fields: Vec<String> = operation
            .result
            .fields
            .iter()
            .zip(&compiled.fields)
            .map(|(field, expr)| format!("\"{}\": {}", field.name, names.python(expr)))
            .collect();
        let object = format!("{{{}}}", fields.join(", "));
        match (each, name) {
            (Some(each), Some(name)) => {
                names.locals.pop();
                format!("[{object} for {name} in {each}]")
            }
            _ => object,
        }
    }

    fn effect(
        &self,
        effect: &Effect,
        compiled: &CompiledEffect,
        names: &mut Names<'_>,
        out: &mut String,
    ) {
        let mut indent = "            ".to_owned();
        let each = match effect {
            Effect::Insert(effect) => effect.each.as_ref(),
            Effect::Set(effect) => effect.each.as_ref(),
            Effect::Delete(effect) => effect.each.as_ref(),
            Effect::Assign(_) => None,
        };
        let depth = names.locals.len();
        if let (Some(list), Some(each)) = (&compiled.each, each) {
            let list = names.python(list);
            let _ = writeln!(out, "{indent}for {} in {list}:", each.name);
            names.locals.push(each.name.clone());
            indent.push_str("    ");
        }
        if let Some(when) = &compiled.when {
            let _ = writeln!(out, "{indent}if {}:", names.python(when));
            indent.push_str("    ");
        }
        let mut line = |text: String| {
            let _ = writeln!(out, "{indent}{text}");
        };
        let mut inserted = None;
        match &compiled.change {
            Change::Insert {
                entity,
                key,
                values,
                named,
            } => {
                let declared = &self.specification.entities[*entity];
                let collection = names.collection(*entity);
                if let Some(key) = key {
                    line(format!("_key = {}", names.python(key)));
                } else {
                    let next = next_name(&declared.name);
                    let prefix = literal(&Json::from(declared.key.prefix.as_str()));
                    line(format!(
                        "_key = _next_key(self.state, {collection}, \"{next}\", {prefix})"
                    ));
                }
                let mut fields = vec![format!("{}=_key", declared.key.name)];
                for (field, value) in declared.fields.iter().zip(values) {
                    fields.push(format!("{}={}", field.name, names.python(value)));
                }
                line(format!(
                    "_made = {}({})",
                    self.class(*entity),
                    fields.join(", ")
                ));
                line(format!("_new({collection}, _key, \"{}\")", declared.name));
                line(format!("{collection}[_key] = _made"));
                if *named
                    && let Effect::Insert(insert) = effect
                    && let Some(name) = &insert.name
                {
                    line(format!("{name} = _key"));
                    inserted = Some(name.clone());
                }
            }
            Change::Set {
                entity,
                key,
                values,
            } => {
                let declared = &self.specification.entities[*entity];
                let collection = names.collection(*entity);
                line(format!("_key = {}", names.python(key)));
                line(format!(
                    "_found = _row({collection}, _key, \"{}\")",
                    declared.name
                ));
                let fields: Vec<String> = values
                    .iter()
                    .map(|(field, value)| {
                        let name = &self.schema.entities[*entity].fields[*field].0;
                        format!("\"{name}\": {}", names.python(value))
                    })
                    .collect();
                let changed = fields.join(", ");
                line(format!(
                    "{collection}[_key] = _found.model_copy(update={{{changed}}})"
                ));
            }
            Change::Delete { entity, key } => {
                let declared = &self.specification.entities[*entity];
                let collection = names.collection(*entity);
                line(format!("_key = {}", names.python(key)));
                line(format!("_row({collection}, _key, \"{}\")", declared.name));
                line(format!("del {collection}[_key]"));
            }
            Change::Assign { value, to } => {
                let name = &self.schema.values[*value].0;
                line(format!("self.state.{name} = {}", names.python(to)));
            }
        }
        names.locals.truncate(depth);
        names.locals.extend(inserted);
    }
}

/// Writes the FastMCP wrapper of an operation.
pub(super) fn wrapper(operation: &Operation, out: &mut String) {
    // Python wants parameters with defaults last.
    let required = operation
        .parameters
        .iter()
        .filter(|parameter| parameter.required);
    let others = operation
        .parameters
        .iter()
        .filter(|parameter| !parameter.required);
    let mut parameters = Vec::new();
    let mut dates = String::new();
    for parameter in required.chain(others) {
        let kind = annotation(&parameter.kind, parameter.can_be_null());
        let mut rules = String::new();
        for (rule, limit) in [("ge", &parameter.minimum), ("le", &parameter.maximum)] {
            if let Some(limit) = limit {
                let _ = write!(rules, "{rule}={limit}, ");
            }
        }
        let description = literal(&Json::from(parameter.description.as_str()));
        let default = match &parameter.default {
            Some(default) => format!(" = {}", literal(default)),
            None if parameter.required => String::new(),
            None => " = None".to_owned(),
        };
        let name = &parameter.name;
        parameters.push(format!(
            "    {name}: Annotated[{kind}, Field({rules}description={description})]{default},\n"
        ));
        if parameter.kind == Type::Date {
            let _ = writeln!(dates, "    _date({name})");
        }
    }
    let kind = if operation.result.each.is_some() {
        "List[dict]"
    } else {
        "dict"
    };
    let parameters = if parameters.is_empty() {
        String::new()
    } else {
        format!("\n{}", parameters.concat())
    };
    let passed: Vec<String> = operation
        .parameters
        .iter()
        .map(|parameter| format!("{0}={0}", parameter.name))
        .collect();
    let _ = writeln!(
        out,
        "\n\n@mcp.tool()\ndef {0}({parameters}) -> {kind}:\n    {1}\n{dates}    return api.{0}({2})",
        operation.name,
        docstring(&operation.description),
        passed.join(", ")
    );
}
