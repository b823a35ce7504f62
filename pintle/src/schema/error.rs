use std::{error::Error, fmt};

/// The reason why a schema was refused.
///
/// Pointers are JSON pointers into the schema.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SchemaError {
    /// The schema is neither an object nor a boolean.
    NotASchema {
        /// The value, truncated.
        got: String,
    },
    /// The schema of arguments does not have the type `object`.
    NotAnObject {
        /// The `type`, truncated; `None` if it is missing.
        kind: Option<String>,
    },
    /// The dialect of JSON Schema is not supported.
    Dialect {
        /// The value of `$schema`, truncated.
        dialect: String,
    },
    /// The schema has too many bytes.
    TooLarge {
        /// The maximum number of bytes.
        limit: usize,
    },
    /// The schema is nested too deeply.
    TooDeep {
        /// The maximum number of levels.
        limit: usize,
    },
    /// The schema has too many parts.
    TooMany {
        /// The kind of part.
        what: &'static str,
        /// The maximum number of them.
        limit: usize,
    },
    /// The alternatives of alternatives are too many to check a value: their product exceeds the limit.
    TooWide {
        /// The maximum number of checks of one part of a value.
        limit: usize,
    },
    /// The target of a `$ref` is not in the schema. References are never fetched.
    Reference {
        /// The reference, truncated.
        reference: String,
    },
    /// A part refers to itself for the same value, which would never end.
    Circular,
    /// A pattern is invalid or cannot be matched in linear time.
    Pattern {
        /// The location.
        pointer: String,
        /// The pattern, truncated.
        pattern: String,
    },
    /// A keyword has an invalid value.
    Invalid {
        /// The location.
        pointer: String,
        /// The value, truncated.
        got: String,
    },
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotASchema { got } => {
                write!(f, "schema: `{got}` is not a schema; give a JSON object")
            }
            Self::NotAnObject { kind: Some(kind) } => {
                write!(f, "schema: arguments are an object, and its type is `{kind}`; make it `\"object\"`")
            }
            Self::NotAnObject { kind: None } => {
                f.write_str("schema: arguments are an object, and it has no type; add `\"type\":\"object\"`")
            }
            Self::Dialect { dialect } => write!(
                f,
                "schema: dialect `{dialect}` is not known; leave `$schema` out for 2020-12, or name 2019-09 or draft \
                 7, 6 or 4"
            ),
            Self::TooLarge { limit } => write!(f, "schema: it has more than {limit} bytes; split it up"),
            Self::TooDeep { limit } => {
                write!(f, "schema: it is nested more than {limit} levels deep; move parts into `$defs`")
            }
            Self::TooMany { what, limit } => {
                write!(f, "schema: it has more than {limit} {what}; make it simpler")
            }
            Self::TooWide { limit } => write!(
                f,
                "schema: its alternatives multiply to more than {limit} checks of one value; nest fewer of them"
            ),
            Self::Reference { reference } => write!(
                f,
                "schema: nothing in it is called `{reference}`, and nothing is fetched; put the target into `$defs`"
            ),
            Self::Circular => f.write_str(
                "schema: a part of it refers to itself for the same value; refer from within `properties` or `items`",
            ),
            Self::Pattern { pointer, pattern } => write!(
                f,
                "schema: the pattern `{pattern}` at `{pointer}` cannot be used; write it without look-around, \
                 back-references and large repetitions"
            ),
            Self::Invalid { pointer, got } if pointer.is_empty() => {
                write!(f, "schema: `{got}` is not what JSON Schema allows")
            }
            Self::Invalid { pointer, got } => {
                write!(f, "schema: `{got}` at `{pointer}` is not what JSON Schema allows there")
            }
        }
    }
}

impl Error for SchemaError {}
