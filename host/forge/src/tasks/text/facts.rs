//! Facts that tell an item of a result from the others: its name, a property, the highest or lowest value, or two
//! properties.

use std::cmp::Ordering;

use serde_json::Value;

use super::words::is_label;
use crate::graph::{Output, ValueType};
use crate::sampling::Draws;
use crate::tasks::record::Implicit;
use crate::tasks::request::{Fact, order};

/// No facts tell the items apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} items are alike")]
pub(super) struct Alike(usize);

/// Draws that decide where a request says less than it could.
pub(super) struct Refinement {
    draws: Draws,
    probability: f64,
}

impl Refinement {
    pub(super) fn new(draws: Draws, probability: f64) -> Self {
        Self { draws, probability }
    }

    /// Draws if a refinement is applied.
    pub(super) fn applies(&mut self) -> bool {
        self.draws.chance(self.probability)
    }
}

/// An item of a result among others that fit the same facts.
pub(super) struct Item<'a> {
    this: &'a Value,
    others: Vec<&'a Value>,
    /// The outputs with a scalar value that is not a key and that the facts do not say.
    fields: Vec<&'a Output>,
}

impl<'a> Item<'a> {
    /// The item `this` of `found`, among the others and those of `unseen`, which the lookup left out. Items that do not
    /// fit the facts are left out.
    pub(super) fn new(
        this: &'a Value,
        found: &'a [Value],
        unseen: &'a [Value],
        outputs: &'a [Output],
        facts: &[Fact],
    ) -> Self {
        let fits = |one: &Value| {
            facts.iter().all(|fact| match fact {
                Fact::Is { field, value } => one.get(field).is_none_or(|other| other == value),
                _ => true,
            })
        };
        let is_told = |output: &Output| {
            let mut facts = facts.iter();
            facts.any(|fact| matches!(fact, Fact::Is { field, .. } if *field == output.name))
        };
        let is_plain = |output: &&Output| {
            let value = &this[&output.name];
            let is_scalar = value.is_string() || value.is_number() || value.is_boolean();
            is_scalar && !is_told(output) && !matches!(output.kind, ValueType::Key(_))
        };
        Self {
            this,
            others: found
                .iter()
                .chain(unseen)
                .filter(|one| !std::ptr::eq(*one, this) && fits(one))
                .collect(),
            fields: outputs.iter().filter(is_plain).collect(),
        }
    }

    /// Adds facts until they fit only this item. Returns the kind of refinement, if there was one.
    pub(super) fn tell_apart(
        &self,
        facts: &mut Vec<Fact>,
        refinement: &mut Refinement,
    ) -> Result<Option<Implicit>, Alike> {
        let is_named = facts
            .iter()
            .any(|fact| matches!(fact, Fact::Is { field, .. } if is_label(field)));
        let (labels, plain): (Vec<&Output>, Vec<&Output>) = self
            .fields
            .iter()
            .filter(|output| {
                let mut others = self.others.iter();
                others.all(|other| self.differs(output, other))
            })
            .copied()
            .partition(|output| is_label(&output.name));
        let label = labels.first().copied();
        if self.others.is_empty() {
            return Ok(self.name_it(facts, is_named, label, &plain, refinement));
        }
        if refinement.applies() || (label.is_none() && plain.is_empty()) {
            let refined = self.refined(is_named, &plain, refinement);
            if let Some((fact, kind)) = refined {
                facts.push(fact);
                return Ok(Some(kind));
            }
        }
        if let Some(output) = label.or(plain.first().copied()) {
            facts.push(self.is(output));
            return Ok(None);
        }
        let pair = self.pair().ok_or(Alike(self.others.len() + 1))?;
        facts.extend(pair);
        Ok(Some(Implicit::Constraint))
    }

    /// Names an item that the facts tell already. A name is said all the same, unless the description is what has to be
    /// solved.
    fn name_it(
        &self,
        facts: &mut Vec<Fact>,
        is_named: bool,
        label: Option<&Output>,
        plain: &[&Output],
        refinement: &mut Refinement,
    ) -> Option<Implicit> {
        if is_named {
            return None;
        }
        match label {
            Some(label) if facts.is_empty() || !refinement.applies() => facts.push(self.is(label)),
            _ if facts.is_empty() => {
                facts.push(plain.first().map_or(Fact::Only, |output| self.is(output)));
            }
            _ => return Some(Implicit::Description),
        }
        None
    }

    /// A fact that is harder to follow than a name.
    fn refined(
        &self,
        is_named: bool,
        plain: &[&Output],
        refinement: &mut Refinement,
    ) -> Option<(Fact, Implicit)> {
        let extremes = self.extremes();
        let draws = &mut refinement.draws;
        let (wants_extreme, place) = (draws.chance(0.5), draws.index(extremes.len().max(1)));
        if let Some(extreme) = extremes.get(place)
            && (wants_extreme || plain.is_empty())
        {
            return Some((extreme.clone(), Implicit::Constraint));
        }
        let output = draws.pick(plain)?;
        let kind = if is_named {
            Implicit::Constraint
        } else {
            Implicit::Description
        };
        Some((self.is(output), kind))
    }

    fn is(&self, output: &Output) -> Fact {
        Fact::Is {
            field: output.name.clone(),
            value: self.this[&output.name].clone(),
        }
    }

    fn differs(&self, output: &Output, other: &Value) -> bool {
        other.get(&output.name) != self.this.get(&output.name)
    }

    /// Two facts that together fit no other item.
    fn pair(&self) -> Option<[Fact; 2]> {
        let fields = &self.fields;
        for (place, first) in fields.iter().enumerate() {
            for second in &fields[place + 1..] {
                let mut others = self.others.iter();
                if others.all(|other| self.differs(first, other) || self.differs(second, other)) {
                    return Some([self.is(first), self.is(second)]);
                }
            }
        }
        None
    }

    /// Fields in which the item is the highest or the lowest of all.
    fn extremes(&self) -> Vec<Fact> {
        let mut found = Vec::new();
        for output in &self.fields {
            let field = &output.name;
            let is_ordered = matches!(
                output.kind,
                ValueType::Integer | ValueType::Number | ValueType::Date
            );
            if !is_ordered {
                continue;
            }
            let orders: Vec<Option<Ordering>> = self
                .others
                .iter()
                .map(|other| order(&self.this[field], &other[field]))
                .collect();
            for (highest, wanted) in [(true, Ordering::Greater), (false, Ordering::Less)] {
                if orders.iter().all(|order| *order == Some(wanted)) {
                    found.push(Fact::Extreme {
                        field: field.clone(),
                        highest,
                    });
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use rlf_random::Key;
    use serde_json::json;

    use super::*;

    fn output(name: &str, kind: ValueType) -> Output {
        Output {
            name: name.to_owned(),
            kind,
            description: String::new(),
        }
    }

    /// The facts that tell the first item from the others.
    fn facts(found: &Value, refine: f64) -> Result<(Vec<Fact>, Option<Implicit>), Alike> {
        let outputs = [
            output("room_id", ValueType::Key("School.room".into())),
            output("name", ValueType::Text),
            output("seats", ValueType::Integer),
            output("floor", ValueType::Integer),
        ];
        let found = found.as_array().unwrap();
        let mut facts = Vec::new();
        let mut refinement = Refinement::new(Draws::new(Key::from_value(3)), refine);
        let item = Item::new(&found[0], found, &[], &outputs, &facts);
        let kind = item.tell_apart(&mut facts, &mut refinement)?;
        Ok((facts, kind))
    }

    fn is(field: &str, value: Value) -> Fact {
        Fact::Is {
            field: field.into(),
            value,
        }
    }

    #[test]
    fn a_name_is_said_where_it_is_enough() {
        let found = json!([
            { "room_id": "R1", "name": "Blue", "seats": 4, "floor": 1 },
            { "room_id": "R2", "name": "Red", "seats": 4, "floor": 2 },
        ]);
        assert_eq!(
            facts(&found, 0.0),
            Ok((vec![is("name", json!("Blue"))], None))
        );
        let (refined, kind) = facts(&found, 1.0).unwrap();
        assert!(
            [
                is("floor", json!(1)),
                Fact::Extreme {
                    field: "floor".into(),
                    highest: false
                }
            ]
            .contains(&refined[0]),
            "{refined:?}"
        );
        assert!(kind.is_some());
    }

    #[test]
    fn two_properties_tell_what_one_does_not() {
        let found = json!([
            { "name": "Blue", "seats": 4, "floor": 1 },
            { "name": "Blue", "seats": 4, "floor": 2 },
            { "name": "Blue", "seats": 6, "floor": 1 },
        ]);
        let (told, kind) = facts(&found, 0.0).unwrap();
        assert_eq!(told, [is("seats", json!(4)), is("floor", json!(1))]);
        assert_eq!(kind, Some(Implicit::Constraint));
    }

    #[test]
    fn items_that_a_lookup_left_out_count() {
        let outputs = [output("seats", ValueType::Integer)];
        let found = [json!({ "seats": 4 }), json!({ "seats": 6 })];
        let mut facts = Vec::new();
        let mut refinement = Refinement::new(Draws::new(Key::from_value(3)), 1.0);
        let unseen = [json!({ "seats": 4 }), json!({ "seats": 2 })];
        let item = Item::new(&found[0], &found, &unseen, &outputs, &facts);
        let told = item.tell_apart(&mut facts, &mut refinement);
        assert_eq!(told, Err(Alike(4)));
    }

    #[test]
    fn equal_items_cannot_be_told_apart() {
        let one = json!({ "name": "Blue", "seats": 4, "floor": 1 });
        let found = json!([one.clone(), one]);
        assert_eq!(facts(&found, 0.0), Err(Alike(2)));
    }
}
