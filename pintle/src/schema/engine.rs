//! The wrapped validator. No other file names the crate, because its API changes often.

use jsonschema::{
    Draft, PatternOptions, ReferencingError, ValidationError, Validator, error::ValidationErrorKind,
};
use serde_json::{Map, Value};

use super::{
    SchemaError,
    words::{json, short},
};

/// The size limit of a compiled pattern, and of its DFA cache.
const PATTERN_SIZE: usize = 512 * 1024;

/// A compiled schema that accepts or refuses values.
pub(super) struct Engine {
    validator: Validator,
}

impl Engine {
    pub(super) fn compile(schema: &Value) -> Result<Self, SchemaError> {
        build(schema, draft_of(schema)?).map(|validator| Self { validator }).map_err(|error| refusal(&error))
    }

    /// Compiles one keyword on its own, in the dialect of the schema.
    pub(super) fn keyword(&self, keyword: &str, operand: &Value) -> Option<Self> {
        let schema = Value::Object(Map::from_iter([(keyword.to_owned(), operand.clone())]));
        build(&schema, self.validator.draft()).ok().map(|validator| Self { validator })
    }

    pub(super) fn fits(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// Returns whether keywords next to a `$ref` apply; the oldest dialects ignore them.
    pub(super) fn reads_beside_references(&self) -> bool {
        !matches!(self.validator.draft(), Draft::Draft4 | Draft::Draft6 | Draft::Draft7)
    }
}

fn build(schema: &Value, draft: Draft) -> Result<Validator, ValidationError<'static>> {
    // The linear-time engine: it refuses look-around and back-references, so no pattern can hang a check.
    let patterns = PatternOptions::regex().size_limit(PATTERN_SIZE).dfa_size_limit(PATTERN_SIZE);
    jsonschema::options()
        .with_draft(draft)
        .offline()
        .should_validate_formats(false)
        .with_pattern_options(patterns)
        .build(schema)
}

fn draft_of(schema: &Value) -> Result<Draft, SchemaError> {
    let Some(dialect) = schema.get("$schema").and_then(Value::as_str) else {
        return Ok(Draft::Draft202012);
    };
    match Draft::from_schema_uri(dialect) {
        Draft::Unknown => Err(SchemaError::Dialect { dialect: short(dialect) }),
        known => Ok(known),
    }
}

fn refusal(error: &ValidationError<'_>) -> SchemaError {
    let reference = |reference: &str| SchemaError::Reference { reference: short(reference) };
    match error.kind() {
        ValidationErrorKind::Referencing(ReferencingError::Unretrievable { uri, .. }) => reference(uri),
        ValidationErrorKind::Referencing(ReferencingError::PointerToNowhere { pointer }) => {
            reference(pointer)
        }
        ValidationErrorKind::Referencing(ReferencingError::NoSuchAnchor { anchor }) => reference(anchor),
        ValidationErrorKind::Referencing(other) => reference(&other.to_string()),
        ValidationErrorKind::Format { format } if format == "regex" => SchemaError::Pattern {
            pointer: error.instance_path().as_str().to_owned(),
            pattern: short(error.instance().as_str().unwrap_or_default()),
        },
        _ => SchemaError::Invalid {
            pointer: error.instance_path().as_str().to_owned(),
            got: json(error.instance()),
        },
    }
}
