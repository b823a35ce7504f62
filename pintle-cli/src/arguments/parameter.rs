use pintle::types::JsonObject;
use serde_json::Value;

use super::shape::{Shape, bare};

/// A parameter of a tool, from its schema.
#[derive(Clone, Debug)]
pub(crate) struct Parameter<'a> {
    pub(crate) name: &'a str,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
    pub(crate) description: Option<&'a str>,
    pub(crate) default: Option<&'a Value>,
}

impl Parameter<'_> {
    /// Returns the values that the parameter, or an item of it, can have, if they are known.
    pub(crate) fn values(&self) -> Vec<String> {
        fn of(shape: &Shape) -> Vec<String> {
            match shape {
                Shape::Choice(values) => values.iter().map(bare).collect(),
                Shape::Boolean => vec!["true".to_owned(), "false".to_owned()],
                Shape::List(item) => of(item),
                Shape::OneOf(shapes) => shapes.iter().flat_map(of).collect(),
                _ => Vec::new(),
            }
        }
        of(&self.shape)
    }
}

/// Returns the parameters of a schema: required ones first, otherwise in its order.
pub(crate) fn parameters(schema: &JsonObject) -> Vec<Parameter<'_>> {
    let Some(Value::Object(properties)) = schema.get("properties") else { return Vec::new() };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
    let mut all: Vec<_> = properties
        .iter()
        .map(|(name, property)| Parameter {
            name,
            shape: Shape::of(property, schema),
            required: is_required(name),
            description: property.get("description").and_then(Value::as_str),
            default: property.get("default").filter(|default| !default.is_null()),
        })
        .collect();
    all.sort_by_key(|parameter| !parameter.required);
    all
}
