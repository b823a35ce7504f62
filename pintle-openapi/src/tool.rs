use std::sync::OnceLock;

use pintle::{
    schema::Schema,
    types::{JsonObject, schema::Tool},
};
use serde_json::Value;

use crate::{answer::AnswerPlan, request::RequestPlan};

/// An operation as a tool.
#[derive(Debug)]
pub(crate) struct ApiTool {
    pub(crate) tool: Tool,
    /// The method and the path.
    pub(crate) key: String,
    pub(crate) plan: RequestPlan,
    pub(crate) answer: AnswerPlan,
    /// The advice for a call that the API refuses for a lack of credentials.
    pub(crate) hint: Option<String>,
    /// Compiled for the first call; `None` if that fails, and the API judges its arguments alone.
    pub(crate) compiled: OnceLock<Option<Schema>>,
}

impl ApiTool {
    /// Checks the arguments of a call. The error is for the model.
    pub(crate) fn check(&self, arguments: &JsonObject) -> Result<(), String> {
        let compiled = self.compiled.get_or_init(|| {
            let compiled = Schema::for_arguments(&Value::Object((*self.tool.input_schema).clone()));
            compiled
                .map_err(|error| tracing::warn!(tool = self.tool.name, %error, "arguments are not checked"))
                .ok()
        });
        let Some(schema) = compiled else { return Ok(()) };
        let value = Value::Object(arguments.clone());
        schema.check(&value).map_err(|faults| {
            let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
            format!("{}\ncorrect the arguments and try again", faults.join("\n"))
        })
    }

    /// Returns the types that an argument may have; none if that is not said.
    fn types(&self, argument: &str) -> Vec<&str> {
        let property = self.tool.input_schema.get("properties").and_then(|all| all.get(argument));
        match property.and_then(|property| property.get("type")) {
            Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
            kind => kind.and_then(Value::as_str).into_iter().collect(),
        }
    }

    /// Returns whether an argument is one text of a URL.
    pub(crate) fn is_scalar(&self, argument: &str) -> bool {
        let types = self.types(argument);
        !types.is_empty() && !types.iter().any(|kind| matches!(*kind, "array" | "object"))
    }

    /// Returns the value of an argument that a text of a URL stands for.
    pub(crate) fn value(&self, argument: &str, text: &str) -> Option<Value> {
        let types = self.types(argument);
        let has = |kind: &str| types.contains(&kind);
        if types.is_empty() || has("string") {
            return Some(text.into());
        }
        let value: Value = serde_json::from_str(text).ok()?;
        let is_number = value.is_number() && (has("integer") || has("number"));
        (is_number || value.is_boolean() && has("boolean")).then_some(value)
    }
}
