//! Validation of a tool's arguments and result against its schemas.

#[cfg(feature = "validation")]
mod integers;
#[cfg(feature = "validation")]
mod schema_validator;

use std::{fmt, sync::Arc};

use pintle_types::{JsonObject, schema::CallToolResult};

/// The schemas of a tool, a prompt or a template.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "unused without the feature `validation`")]
pub(crate) struct ToolSchemas<'a> {
    pub(crate) name: &'a str,
    pub(crate) input: &'a Arc<JsonObject>,
    /// Whether the input schema is that of the type that the handler takes.
    pub(crate) typed: bool,
    /// Whether the author added constraints to that schema.
    pub(crate) stricter: bool,
    /// Whether a property has a default that the type does not have.
    pub(crate) defaults: bool,
    pub(crate) output: Option<&'a Arc<JsonObject>>,
    /// Whether the output schema is that of the type that the handler returns, without added constraints.
    pub(crate) typed_output: bool,
}

/// The validation of one tool. The default accepts everything: decoding the arguments is a check of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Validation(Option<Arc<dyn Validator>>);

/// A validator for the schemas of one tool.
pub(crate) trait Validator: fmt::Debug + Send + Sync {
    /// Validates the arguments before the handler runs. Returns them with their defaults filled in, if that changes them.
    fn check_arguments(&self, arguments: &str) -> Result<Option<String>, String>;

    /// Returns whether the schema has constraints that decoding does not check.
    fn is_stricter(&self) -> bool;

    /// Returns a message for arguments that could not be decoded, if the schema finds the fault.
    fn explain(&self, arguments: &str) -> Option<String>;

    /// Validates the result.
    fn check_result(&self, result: &CallToolResult) -> Result<(), String>;
}

type MakeValidator = fn(&ToolSchemas<'_>) -> Result<Arc<dyn Validator>, String>;

/// The available validators, of which the first is used; features add to them.
const VALIDATORS: &[MakeValidator] = &[
    #[cfg(feature = "validation")]
    schema_validator::validator,
];

impl Validation {
    /// Compiles the schemas, once.
    pub(crate) fn of(schemas: &ToolSchemas<'_>) -> Result<Self, String> {
        VALIDATORS.first().map(|make| make(schemas)).transpose().map(Self)
    }

    pub(crate) fn check_arguments(&self, arguments: &str) -> Result<Option<String>, String> {
        self.0.as_ref().map_or(Ok(None), |validator| validator.check_arguments(arguments))
    }

    pub(crate) fn is_stricter(&self) -> bool {
        self.0.as_ref().is_some_and(|validator| validator.is_stricter())
    }

    pub(crate) fn explain(&self, arguments: &str) -> Option<String> {
        self.0.as_ref()?.explain(arguments)
    }

    pub(crate) fn check_result(&self, result: &CallToolResult) -> Result<(), String> {
        self.0.as_ref().map_or(Ok(()), |validator| validator.check_result(result))
    }
}
