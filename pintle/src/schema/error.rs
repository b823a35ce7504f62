use std::{error::Error, fmt};

/// Why a schema was refused.
///
/// Places are JSON pointers into the schema.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SchemaError {
    /// Neither an object nor a boolean.
    NotASchema {
        /// What it is, shortened.
        got: String,
    },
    /// Arguments are an object, and the schema does not say so.
    NotAnObject {
        /// Its `type`, shortened; absent if it has none.
        kind: Option<String>,
    },
    /// A dialect of JSON Schema that nobody here speaks.
    Dialect {
        /// What `$schema` says, shortened.
        dialect: String,
    },
    /// More text than a schema may have.
    TooLarge {
        /// How many bytes it may have.
        most: usize,
    },
    /// Nested deeper than a schema may be.
    TooDeep {
        /// How many levels it may have.
        most: usize,
    },
    /// More parts than a schema may have.
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// A `$ref` to something that is not in the schema. Nothing is ever fetched.
    Reference {
        /// Where it leads, shortened.
        reference: String,
    },
    /// A part that refers to itself without looking into the value: it would never end.
    Circular,
    /// A pattern that cannot be matched in linear time, or is none.
    Pattern {
        /// Where it is.
        pointer: String,
        /// The pattern, shortened.
        pattern: String,
    },
    /// A keyword with a value that it may not have.
    Invalid {
        /// Where it is.
        pointer: String,
        /// The value, shortened.
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
            Self::TooLarge { most } => write!(f, "schema: it has more than {most} bytes; split it up"),
            Self::TooDeep { most } => {
                write!(f, "schema: it is nested more than {most} levels deep; move parts into `$defs`")
            }
            Self::TooMany { what, most } => {
                write!(f, "schema: it has more than {most} {what}; make it simpler")
            }
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
