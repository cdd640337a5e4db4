//! The shipped prompts, and the example that each form is explained by.

use super::candidate::Form;
use crate::ask::prompts::Shipped;

/// The prompts of all stages.
pub const PROMPTS: &[Shipped] = &[
    Shipped {
        name: "system",
        text: include_str!("prompts/system.txt"),
        needs: &[],
        knows: &[],
    },
    Shipped {
        name: "sketch",
        text: include_str!("prompts/sketch.txt"),
        needs: &["description", "schema"],
        knows: &[],
    },
    Shipped {
        name: "plan",
        text: include_str!("prompts/plan.txt"),
        needs: &["sketch", "schema"],
        knows: &["description"],
    },
    // The format of specifications, which the prompts of two stages contain.
    Shipped {
        name: "format",
        text: include_str!("prompts/format.txt"),
        needs: &[],
        knows: &[],
    },
    Shipped {
        name: "specification",
        text: include_str!("prompts/specification.txt"),
        needs: &["name", "plan"],
        knows: &["sketch", "format", "example"],
    },
    Shipped {
        name: "python",
        text: include_str!("prompts/python.txt"),
        needs: &["name", "plan"],
        knows: &["sketch", "example"],
    },
    Shipped {
        name: "scenarios-specification",
        text: include_str!("prompts/scenarios-specification.txt"),
        needs: &["file"],
        knows: &["name"],
    },
    Shipped {
        name: "scenarios-python",
        text: include_str!("prompts/scenarios-python.txt"),
        needs: &["file", "schema"],
        knows: &["name"],
    },
    Shipped {
        name: "revise-specification",
        text: include_str!("prompts/revise-specification.txt"),
        needs: &["file", "findings"],
        knows: &["name", "plan", "again", "format"],
    },
    Shipped {
        name: "revise-python",
        text: include_str!("prompts/revise-python.txt"),
        needs: &["file", "scenarios", "findings"],
        knows: &["name", "plan", "again"],
    },
];

/// An environment in a form, for prompts.
pub(super) fn example(form: Form) -> &'static str {
    match form {
        Form::Specification => include_str!("../../../../plugins/specified/examples/Clinic.toml"),
        Form::Python => include_str!("../../../../plugins/environments/Gym.py"),
    }
}
