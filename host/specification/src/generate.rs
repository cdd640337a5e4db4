//! Initial states, generated from a seed.

use std::sync::Arc;

use rlf_random::Key;
use serde_json::Value as Json;

use crate::date;
use crate::error::{GeneratorError, StateError};
use crate::expression::{MAX_STEPS, MAX_TEXT, Machine, ValueType};
use crate::model::{Field, Generator, Scenario, Size};
use crate::program::Program;
use crate::state::{State, Table};
use crate::state_json::read;
use crate::value::Value;

/// Maximum number of draws of one entity until all rules hold.
const MAX_DRAWS: u64 = 20;
/// Maximum number of draws of a field until its value is unique.
const MAX_UNIQUE_DRAWS: u64 = 500;

impl Program {
    /// Generates the initial state of a scenario. The same seed gives the same state.
    pub fn open(&self, size: Size, seed: u64) -> Result<State, StateError> {
        let mut scenarios = self.specification.scenarios.iter();
        let scenario = scenarios
            .find(|scenario| scenario.size == size)
            .ok_or(StateError::NoScenario(size.name()))?;
        let key = Key::from_value(seed)
            .named(&self.specification.name)
            .named(size.name());
        let mut state = State {
            values: Vec::new(),
            tables: vec![Arc::default(); self.schema.entities.len()],
            next: vec![1; self.schema.entities.len()],
        };
        for (index, field) in self.specification.values.iter().enumerate() {
            let key = key.named("values").at(index as u64);
            let generator = scenario
                .generate
                .get(&field.name)
                .or(field.generate.as_ref());
            let kind = &self.schema.values[index].1;
            let value = self.draw(field, kind, generator, key, &state, None);
            state
                .values
                .push(value.map_err(|error| no_value(field.name.clone(), error))?);
        }
        for (entity, declared) in self.specification.entities.iter().enumerate() {
            let key = key.named("entities").at(entity as u64);
            if declared.key.random_start {
                state.next[entity] = 100 + key.named("start").below(0, 800) as i64;
            }
            self.fill(&mut state, scenario, entity, key)?;
        }
        // Nothing shows the others, so a state that is loaded does not have them either.
        for (next, counted) in state.next.iter_mut().zip(&self.counted) {
            if !counted {
                *next = 1;
            }
        }
        match self.broken_rule(&state) {
            None => Ok(state),
            Some(rule) => Err(StateError::ScenarioBreaksRule {
                scenario: size.name(),
                rule,
            }),
        }
    }

    fn fill(
        &self,
        state: &mut State,
        scenario: &Scenario,
        entity: usize,
        key: Key,
    ) -> Result<(), StateError> {
        let declared = &self.specification.entities[entity];
        let Some(count) = scenario.counts.get(&declared.name) else {
            return Ok(());
        };
        let (least, most) = count.range();
        let span = u64::from(most.saturating_sub(least)) + 1;
        let wanted = least + key.below(0, span) as u32;
        let mut refused = String::new();
        for row in 0..wanted {
            for draw in 0..MAX_DRAWS {
                let number = state.next[entity];
                let name: Arc<str> = format!("{}{number}", declared.key.prefix).into();
                let record = self.record(
                    state,
                    scenario,
                    entity,
                    &name,
                    key.at(u64::from(row)).at(draw),
                )?;
                let table: &mut Table = Arc::make_mut(&mut state.tables[entity]);
                table.insert(Arc::clone(&name), record.into());
                match self.broken_rule(state) {
                    None => {
                        state.next[entity] += 1;
                        break;
                    }
                    Some(rule) => {
                        Arc::make_mut(&mut state.tables[entity]).remove(&name);
                        refused = rule;
                    }
                }
            }
        }
        let generated = state.tables[entity].len();
        if generated < least as usize {
            return Err(StateError::TooFew {
                scenario: scenario.size.name(),
                collection: declared.collection.clone(),
                generated,
                least,
                rule: refused,
            });
        }
        Ok(())
    }

    fn record(
        &self,
        state: &State,
        scenario: &Scenario,
        entity: usize,
        name: &Arc<str>,
        key: Key,
    ) -> Result<Vec<Value>, StateError> {
        let declared = &self.specification.entities[entity];
        let mut record = vec![Value::Text(Arc::clone(name))];
        for (position, field) in declared.fields.iter().enumerate() {
            let place = format!("{}.{}", declared.name, field.name);
            let generator = scenario.generate.get(&place).or(field.generate.as_ref());
            let kind = &self.schema.entities[entity].fields[position + 1].1;
            let key = key.at(position as u64);
            let mut tries = 0;
            let value = loop {
                let drawn = self.draw(
                    field,
                    kind,
                    generator,
                    key.at(tries),
                    state,
                    Some((entity, &mut record)),
                );
                let drawn = drawn.map_err(|error| no_value(place.clone(), error))?;
                tries += 1;
                let is_taken = |other: &Arc<[Value]>| other[position + 1] == drawn;
                let again = field.unique && state.tables[entity].values().any(is_taken);
                if !again || tries == MAX_UNIQUE_DRAWS {
                    break drawn;
                }
            };
            record.push(value);
        }
        Ok(record)
    }

    fn draw(
        &self,
        field: &Field,
        kind: &ValueType,
        generator: Option<&Generator>,
        key: Key,
        state: &State,
        record: Option<(usize, &mut Vec<Value>)>,
    ) -> Result<Value, GeneratorError> {
        let pick = |values: &[Json]| {
            let chosen = values.get(key.below(0, values.len().max(1) as u64) as usize);
            let chosen = chosen.ok_or(GeneratorError::NothingToChoose)?;
            Ok(read(&self.schema, kind, chosen)?)
        };
        match generator {
            None => self.draw_by_type(field, kind, key, state),
            Some(Generator::Constant(value)) => Ok(read(&self.schema, kind, value)?),
            Some(Generator::Choice(values)) => pick(values),
            Some(Generator::Word(name)) => text_value(self.word(name, key)?),
            Some(Generator::Template(template)) => {
                let mut text = String::new();
                let mut parts = template.split('{');
                text.push_str(parts.next().unwrap_or_default());
                for (index, part) in parts.enumerate() {
                    let (name, rest) = part.split_once('}').unwrap_or((part, ""));
                    text.push_str(self.word(name, key.at(index as u64))?);
                    text.push_str(rest);
                }
                text_value(&text)
            }
            Some(Generator::Range { minimum, maximum }) => {
                Ok(number_between(kind, minimum, maximum, key))
            }
            Some(Generator::Dates { from, to }) => {
                let day = |text: &str| {
                    date::parse(text).ok_or_else(|| GeneratorError::NotADate(text.to_owned()))
                };
                let (from, to) = (day(from)?, day(to)?);
                let number = from + key.below(0, to.abs_diff(from) + 1) as i64;
                Ok(Value::text(&date::format(number).unwrap_or_default()))
            }
            Some(Generator::Expression(source)) => {
                let (entity, locals) = record.ok_or(GeneratorError::NoExpression)?;
                // The locals are the key and the fields before this one.
                let found = self.generators.iter().find(|one| {
                    (one.entity, one.field + 1) == (entity, locals.len()) && one.source == *source
                });
                let expr = &found.ok_or(GeneratorError::NoExpression)?.expr;
                let mut steps = MAX_STEPS;
                let mut machine = Machine {
                    schema: &self.schema,
                    state,
                    locals,
                    steps: &mut steps,
                };
                let value = machine.value(expr);
                value.map_err(|fault| GeneratorError::NoResult(fault.to_string()))
            }
        }
    }

    fn draw_by_type(
        &self,
        field: &Field,
        kind: &ValueType,
        key: Key,
        state: &State,
    ) -> Result<Value, GeneratorError> {
        match kind {
            ValueType::Optional(_) => Ok(Value::Null),
            ValueType::Boolean => Ok(Value::Boolean(key.below(0, 2) == 1)),
            ValueType::Enumeration(values) => {
                let chosen = values.get(key.below(0, values.len() as u64) as usize);
                text_value(chosen.ok_or(GeneratorError::NothingToChoose)?)
            }
            ValueType::Key(entity) => {
                let keys = &state.tables[*entity];
                let position = key.below(0, keys.len().max(1) as u64) as usize;
                let chosen = keys.keys().nth(position).cloned().map(Value::Text);
                chosen.ok_or_else(|| {
                    GeneratorError::NothingToReferTo(self.schema.entities[*entity].name.clone())
                })
            }
            ValueType::List(_) => Ok(Value::List(Arc::new([]))),
            ValueType::Integer | ValueType::Number => match (&field.minimum, &field.maximum) {
                (Some(minimum), Some(maximum)) => Ok(number_between(kind, minimum, maximum, key)),
                _ => Err(GeneratorError::NeedsGenerator),
            },
            _ => Err(GeneratorError::NeedsGenerator),
        }
    }

    fn word(&self, vocabulary: &str, key: Key) -> Result<&str, GeneratorError> {
        let words = self.specification.vocabularies.get(vocabulary);
        let words = words.filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| GeneratorError::NoVocabulary(vocabulary.to_owned()))?;
        Ok(&words[key.below(0, words.len() as u64) as usize])
    }
}

fn text_value(text: &str) -> Result<Value, GeneratorError> {
    if text.len() > MAX_TEXT {
        return Err(GeneratorError::TooLong(text.len()));
    }
    Ok(Value::text(text))
}

fn no_value(field: String, error: GeneratorError) -> StateError {
    StateError::NoValue { field, error }
}

/// A number between limits. Numbers that are not integers have two decimals.
fn number_between(
    kind: &ValueType,
    minimum: &serde_json::Number,
    maximum: &serde_json::Number,
    key: Key,
) -> Value {
    let is_number = match kind {
        ValueType::Optional(inner) => **inner == ValueType::Number,
        kind => *kind == ValueType::Number,
    };
    if is_number {
        let least = minimum.as_f64().unwrap_or(0.0);
        let most = maximum.as_f64().unwrap_or(least).max(least);
        let drawn = least + key.uniform(0) * (most - least);
        return Value::Number(((drawn * 100.0).round() / 100.0).clamp(least, most));
    }
    let least = minimum.as_i64().unwrap_or(0);
    let most = maximum.as_i64().unwrap_or(least).max(least);
    let drawn = key.below(0, most.abs_diff(least).saturating_add(1));
    Value::Integer(least.saturating_add_unsigned(drawn))
}
