//! Static checks: everything about a specification that can be known before it runs.
//!
//! Findings come in the order of the file. A specification whose findings are all warnings becomes a [`Program`].

mod descriptions;
mod names;
mod possible;
mod ranges;
mod scenarios;
mod sources;

use crate::expression::Schema;
use crate::finding::{Finding, Kind};
use crate::model::{Effect, Specification, Type};
use crate::program::{Compiler, Program};
use crate::read::{self, Format, Lines};

/// Maximum number of entities, of operations, of invariants, and of fields or parameters of one of them.
const MAX_PARTS: usize = 64;
/// Maximum nesting of list types. Random walks draw several items for every list, so each level multiplies them.
const MAX_LISTS: usize = 3;

/// A specification after the checks.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The program, unless a finding is an error.
    pub program: Option<Program>,
    /// The findings of the checks.
    pub findings: Vec<Finding>,
}

/// Checks and compiles a specification.
pub fn check(specification: &Specification) -> Checked {
    let mut findings = Vec::new();
    sizes(specification, &mut findings);
    lists(specification, &mut findings);
    if !findings.is_empty() {
        return Checked {
            program: None,
            findings,
        };
    }
    if specification.operations.is_empty() {
        findings.push(Finding::new(
            Kind::Unreadable,
            "/operations",
            "there is no operation",
            "write at least one",
        ));
    }
    names::check(specification, &mut findings);
    ranges::check(specification, &mut findings);
    scenarios::check(specification, &mut findings);
    let schema = Schema::new(specification);
    let mut compiler = Compiler::new(specification, &schema);
    let program = compiler.program();
    findings.append(&mut compiler.findings);
    effects(specification, &mut findings);
    results(specification, &mut findings);
    sources::check(specification, &mut findings);
    descriptions::check(specification, &mut findings);
    // With an error, parts of the program are missing.
    if !findings.iter().any(Finding::is_error) {
        possible::check(&program, &mut findings);
    }
    let is_sound = !findings.iter().any(Finding::is_error);
    Checked {
        program: is_sound.then_some(program),
        findings,
    }
}

/// Reads, checks and compiles the text of a file. Findings have lines where the format has them.
pub fn check_text(text: &str, format: Format) -> Checked {
    let mut checked = match read::read(text, format) {
        Ok(specification) => check(&specification),
        Err(finding) => Checked {
            program: None,
            findings: vec![finding],
        },
    };
    if !checked.findings.is_empty() {
        let lines = Lines::new(text, format);
        for finding in &mut checked.findings {
            finding.line = finding.line.or_else(|| lines.line(&finding.place));
        }
    }
    checked
}

fn sizes(specification: &Specification, findings: &mut Vec<Finding>) {
    let mut limit = |place: String, count: usize, most: usize| {
        if count > most {
            findings.push(Finding::new(
                Kind::TooLarge,
                place,
                format!("there are {count}"),
                format!("use at most {most}"),
            ));
        }
    };
    limit("/values".into(), specification.values.len(), MAX_PARTS);
    limit("/entities".into(), specification.entities.len(), MAX_PARTS);
    limit(
        "/operations".into(),
        specification.operations.len(),
        MAX_PARTS,
    );
    limit(
        "/invariants".into(),
        specification.invariants.len(),
        MAX_PARTS,
    );
    for (index, entity) in specification.entities.iter().enumerate() {
        limit(
            format!("/entities/{index}/fields"),
            entity.fields.len(),
            MAX_PARTS,
        );
    }
    for (index, operation) in specification.operations.iter().enumerate() {
        let at = format!("/operations/{index}");
        limit(
            format!("{at}/parameters"),
            operation.parameters.len(),
            MAX_PARTS,
        );
        limit(
            format!("{at}/bindings"),
            operation.bindings.len(),
            MAX_PARTS,
        );
        limit(
            format!("{at}/preconditions"),
            operation.preconditions.len(),
            MAX_PARTS,
        );
        limit(format!("{at}/effects"), operation.effects.len(), MAX_PARTS);
        limit(
            format!("{at}/result/fields"),
            operation.result.fields.len(),
            MAX_PARTS,
        );
    }
    for (index, scenario) in specification.scenarios.iter().enumerate() {
        for (name, count) in &scenario.counts {
            limit(
                format!("/scenarios/{index}/counts/{name}"),
                count.range().1 as usize,
                500,
            );
        }
    }
}

/// Reports types whose lists are nested too deeply.
fn lists(specification: &Specification, findings: &mut Vec<Finding>) {
    let mut look = |kind: &Type, place: String| {
        let (mut inner, mut depth) = (kind, 0);
        while let Type::List(item) = inner {
            inner = item;
            depth += 1;
        }
        if depth > MAX_LISTS {
            findings.push(Finding::new(
                Kind::TooLarge,
                place,
                format!("lists are nested {depth} deep"),
                format!("nest at most {MAX_LISTS}"),
            ));
        }
    };
    for (index, value) in specification.values.iter().enumerate() {
        look(&value.kind, format!("/values/{index}/type"));
    }
    for (index, entity) in specification.entities.iter().enumerate() {
        for (number, field) in entity.fields.iter().enumerate() {
            let place = format!("/entities/{index}/fields/{number}/type");
            look(&field.kind, place);
        }
    }
    for (index, operation) in specification.operations.iter().enumerate() {
        let at = format!("/operations/{index}");
        for (number, parameter) in operation.parameters.iter().enumerate() {
            look(&parameter.kind, format!("{at}/parameters/{number}/type"));
        }
        for (number, field) in operation.result.fields.iter().enumerate() {
            look(&field.kind, format!("{at}/result/fields/{number}/type"));
        }
    }
}

/// Reports fields of a result that have the same expression. Somebody copied one and forgot to change it.
fn results(specification: &Specification, findings: &mut Vec<Finding>) {
    for (index, operation) in specification.operations.iter().enumerate() {
        let fields = &operation.result.fields;
        for (number, field) in fields.iter().enumerate() {
            let is_literal = !field.value.contains(char::is_alphabetic)
                || field.value.starts_with(['\'', '"'])
                || ["true", "false", "null"].contains(&field.value.as_str());
            let mut earlier = fields[..number].iter();
            if let (false, Some(same)) = (is_literal, earlier.find(|one| one.value == field.value))
            {
                findings.push(Finding::new(
                    Kind::RepeatedResult,
                    format!("/operations/{index}/result/fields/{number}/value"),
                    format!("`{}` always has the value of `{}`", field.name, same.name),
                    "correct the expression, or leave the field out",
                ));
            }
        }
    }
}

fn effects(specification: &Specification, findings: &mut Vec<Finding>) {
    for (index, operation) in specification.operations.iter().enumerate() {
        let place = format!("/operations/{index}");
        let name = &operation.name;
        match (operation.read_only, operation.effects.is_empty()) {
            (true, false) => findings.push(Finding::new(
                Kind::BadEffect,
                place,
                format!("`{name}` is read-only and has effects"),
                "leave out `read_only`, or the effects",
            )),
            (false, true) => findings.push(Finding::new(
                Kind::BadEffect,
                place,
                format!("`{name}` has no effects and is not read-only"),
                "set `read_only = true`, or write its effects",
            )),
            _ => {}
        }
        let is_guarded =
            !operation.preconditions.is_empty() || !operation.postconditions.is_empty();
        if !operation.effects.is_empty() && !is_guarded {
            findings.push(Finding::new(
                Kind::Unguarded,
                format!("/operations/{index}"),
                format!("`{name}` has effects, and neither a precondition nor a postcondition"),
                "refuse what must not happen, or state what holds after the effects; otherwise verification cannot find a wrong effect",
            ));
        }
        for (number, effect) in operation.effects.iter().enumerate() {
            let Effect::Delete(delete) = effect else {
                continue;
            };
            let again = operation.effects[..number].contains(&Effect::Delete(delete.clone()));
            if again {
                findings.push(Finding::new(
                    Kind::BadEffect,
                    format!("/operations/{index}/effects/{number}"),
                    "the effect deletes what an earlier one deleted",
                    "leave it out",
                ));
            }
        }
    }
}
