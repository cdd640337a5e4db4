//! Errors of generating and loading states.

/// A state could not be generated or loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The specification has no scenario of this size.
    #[error("there is no scenario `{0}`")]
    NoScenario(&'static str),
    /// The generator of a field or single value gives no value.
    #[error("`{field}`: {error}")]
    NoValue {
        /// The field: `entity.field`, or the name of a single value.
        field: String,
        /// The reason.
        error: GeneratorError,
    },
    /// The rules allow fewer entities than the scenario needs.
    #[error(
        "scenario `{scenario}`: only {generated} of at least {least} {collection} can be generated, because of the rule {rule}"
    )]
    TooFew {
        /// The scenario.
        scenario: &'static str,
        /// The collection of the entities.
        collection: String,
        /// Number of entities that were generated.
        generated: usize,
        /// Number of entities that the scenario needs.
        least: u32,
        /// The rule that the last rejected one breaks.
        rule: String,
    },
    /// The generated state breaks a rule.
    #[error("scenario `{scenario}` breaks the rule {rule}")]
    ScenarioBreaksRule {
        /// The scenario.
        scenario: &'static str,
        /// The rule.
        rule: String,
    },
    /// The state is not a JSON object.
    #[error("a state is an object")]
    NotAnObject,
    /// A part of the state does not have the form that the specification says.
    #[error("{place}{problem}")]
    Malformed {
        /// The place, with `: ` after it: empty for the whole state.
        place: String,
        /// The fault.
        problem: String,
    },
    /// The loaded state breaks a rule.
    #[error("the state breaks the rule {0}")]
    BreaksRule(String),
}

/// A generator gives no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GeneratorError {
    /// A choice is empty.
    #[error("there is nothing to choose from")]
    NothingToChoose,
    /// A value has another type than its field.
    #[error(transparent)]
    WrongValue(#[from] WrongValue),
    /// A limit of dates is not a date.
    #[error("{0} is no date")]
    NotADate(String),
    /// There is no vocabulary of this name, or it is empty.
    #[error("there is no vocabulary `{0}`")]
    NoVocabulary(String),
    /// There is no entity to refer to.
    #[error("there is no {0} to refer to")]
    NothingToReferTo(String),
    /// A text is longer than texts of a state can be.
    #[error("a generated text has {0} bytes, and texts have at most 65,536; use shorter words")]
    TooLong(usize),
    /// A field of its type needs a generator.
    #[error("it needs `generate`, or a minimum and a maximum")]
    NeedsGenerator,
    /// An expression was not compiled for this field.
    #[error("an expression needs an entity")]
    NoExpression,
    /// An expression has no value in the state so far.
    #[error("{0}")]
    NoResult(String),
}

/// A JSON value that is not of the type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{value} is not {expected}")]
pub struct WrongValue {
    /// The first characters of the value.
    pub value: String,
    /// The type, in words.
    pub expected: String,
}
