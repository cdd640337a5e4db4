//! The limits of a schema, and the reasons to refuse one.

/// Maximum length of a schema, in bytes of compact JSON.
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// Maximum nesting of values in a schema.
pub const MAX_SCHEMA_DEPTH: usize = 32;
/// Maximum nesting of values in a schema after every `$ref` is replaced by its target.
pub const MAX_UNFOLDED_DEPTH: usize = 96;
/// Maximum number of values in a schema after every `$ref` is replaced by its target. Values that
/// `unevaluatedProperties` and `unevaluatedItems` look at again are counted again.
pub const MAX_SCHEMA_NODES: usize = 20_000;
/// Maximum size of all compiled regular expressions of a schema, in bytes.
pub const MAX_PATTERN_BYTES: usize = 1 << 20;

/// The reason why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The text is not JSON.
    #[error("the schema is not JSON: {0}")]
    NotJson(String),
    /// The root is not `"type": "object"`.
    #[error(
        "the schema's root must have \"type\": \"object\", because arguments and answers are objects"
    )]
    RootNotObject,
    /// Over [`MAX_SCHEMA_BYTES`].
    #[error("the schema has {0} bytes; at most {MAX_SCHEMA_BYTES} are allowed")]
    TooLong(usize),
    /// Over [`MAX_SCHEMA_DEPTH`].
    #[error("the schema is nested more than {MAX_SCHEMA_DEPTH} deep")]
    TooDeep,
    /// Over [`MAX_UNFOLDED_DEPTH`].
    #[error("the schema is nested more than {MAX_UNFOLDED_DEPTH} deep once every $ref is followed")]
    UnfoldsTooDeep,
    /// Over [`MAX_PATTERN_BYTES`].
    #[error(
        "the schema's regular expressions need more than {MAX_PATTERN_BYTES} bytes once they are compiled"
    )]
    PatternsTooLarge,
    /// Over [`MAX_SCHEMA_NODES`].
    #[error(
        "the schema unfolds into more than {MAX_SCHEMA_NODES} values once every $ref is followed"
    )]
    TooManyNodes,
    /// A reference that leaves the schema, or that is resolved by name at run time.
    #[error(
        "\"{keyword}\": \"{target}\" is not allowed; only \"$ref\": \"#/…\" into the same schema is"
    )]
    ForeignReference {
        /// The keyword, such as `$ref`.
        keyword: String,
        /// The target of the reference.
        target: String,
    },
    /// A reference to something that does not exist.
    #[error("\"$ref\": \"{0}\" refers to nothing in the schema")]
    DanglingReference(String),
    /// A reference that leads back to itself.
    #[error("\"$ref\": \"{0}\" leads back to itself; write the levels out")]
    CyclicReference(String),
    /// An invalid schema, or an expression that the linear-time engine does not support.
    #[error("not a valid JSON Schema (2020-12), at {at}: {what}")]
    Invalid {
        /// JSON pointer into the schema; `/` is its root.
        at: String,
        /// The error at that place.
        what: String,
    },
}
