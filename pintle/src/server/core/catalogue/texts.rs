use std::sync::Arc;

use pintle_types::{JsonObject, schema::PromptArgument};
use serde_json::Value;

use super::{complete::allowed, completion::Completers};
use crate::{
    server::{
        core::handler::extract::HandlerKind,
        schema::{
            type_schema::TypeSchema,
            validation::{ToolSchemas, Validation},
        },
    },
    uri::Vars,
};

/// How deep a schema is followed: to the property itself, through references and alternatives.
const DEPTH: u8 = 8;

/// The types of named texts: the arguments of a prompt or the variables of a template.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    schema: Arc<JsonObject>,
    /// Validates what the type does not: lengths, ranges, patterns.
    check: Validation,
}

impl Texts {
    /// Reads the types from the schema of the handler's type. Errors are added to the faults.
    pub(crate) fn of(
        kind: HandlerKind,
        name: &str,
        input: Option<Arc<TypeSchema>>,
        faults: &mut Vec<String>,
    ) -> Self {
        // One variable, or several by their order, have no names to look at.
        let Some(input) = input.filter(|input| input.schema.contains_key("properties")) else {
            return Self::default();
        };
        let mut texts = Self { schema: input.schema.clone(), check: Validation::default() };
        let word = kind.word();
        for (property, schema) in texts.properties() {
            let shape = shape(&texts.schema, schema, DEPTH);
            if shape == Shape::Object || (kind == HandlerKind::Prompt && shape == Shape::List) {
                faults.push(format!(
                    "the {word} `{name}` takes `{property}`, which cannot be read from a text: make it a `String`, a \
                     number, a `bool`, an enum, or an `Option` of one"
                ));
            }
        }
        let schemas = ToolSchemas {
            name,
            input: &texts.schema,
            typed: true,
            stricter: false,
            defaults: false,
            output: None,
            typed_output: false,
        };
        match Validation::of(&schemas) {
            Ok(check) => texts.check = check,
            Err(fault) => faults.push(fault),
        }
        texts
    }

    /// Returns the names of the texts, and the schemas of their values.
    pub(crate) fn properties(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    }

    pub(crate) fn requires(&self, name: &str) -> bool {
        let required = self.schema.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|known| known == name))
    }

    /// Returns the arguments of a prompt, in the order of the fields of its type.
    pub(crate) fn arguments(&self) -> Option<Vec<PromptArgument>> {
        let arguments: Vec<_> = self.properties().map(|(name, schema)| self.argument(name, schema)).collect();
        (!arguments.is_empty()).then_some(arguments)
    }

    fn argument(&self, name: &str, schema: &Value) -> PromptArgument {
        let mut argument = PromptArgument::new(name);
        let text = |word: &str| schema.get(word).and_then(Value::as_str).map(str::to_owned);
        argument.title = text("title");
        argument.description = text("description");
        argument.required = Some(self.requires(name));
        argument
    }

    /// Adds a completer for each text that has a fixed list of values.
    pub(crate) fn complete(&self, completers: &mut Completers) {
        for (name, schema) in self.properties() {
            if let Some(values) = allowed(&self.schema, schema, DEPTH) {
                completers.add_values(name.clone(), values);
            }
        }
    }

    /// Returns whether an empty text stands for an omitted one, as forms send it.
    pub(crate) fn is_blank(&self, name: &str, text: &str) -> bool {
        let property = || self.properties().find(|(known, _)| *known == name).map(|(_, schema)| schema);
        text.is_empty()
            && !self.requires(name)
            && property().is_some_and(|schema| {
                shape(&self.schema, schema, DEPTH) != Shape::Text
                    || allowed(&self.schema, schema, DEPTH).is_some()
            })
    }

    /// Validates decoded texts against the schema. Returns what is wrong.
    pub(crate) fn fault(&self, vars: &Vars) -> Option<String> {
        if !self.check.is_stricter() {
            return None;
        }
        let mut object = JsonObject::new();
        for (name, schema) in self.properties() {
            if let Some(text) = vars.get(name) {
                let items = vars.list(name).unwrap_or_default();
                object.insert(name.clone(), self.value(schema, text, items)?);
            }
        }
        self.check.check_arguments(&Value::Object(object).to_string()).err()
    }

    /// Converts a text into JSON; `None` if the schema does not determine its type.
    fn value(&self, schema: &Value, text: &str, items: &[String]) -> Option<Value> {
        match shape(&self.schema, schema, DEPTH) {
            Shape::Text => Some(text.into()),
            Shape::Integer => {
                text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<u64>().map(Value::from)).ok()
            }
            Shape::Number => text.parse::<f64>().map(Value::from).ok(),
            Shape::Boolean => text.parse::<bool>().map(Value::from).ok(),
            Shape::List => {
                let schema = resolved(&self.schema, schema)?.get("items")?;
                items.iter().map(|item| self.value(schema, item, &[])).collect()
            }
            Shape::Object | Shape::Unknown => None,
        }
    }
}

/// The type of a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Shape {
    Text,
    Integer,
    Number,
    Boolean,
    List,
    Object,
    Unknown,
}

fn shape(root: &JsonObject, schema: &Value, depth: u8) -> Shape {
    let (Some(depth), Some(schema)) = (depth.checked_sub(1), resolved(root, schema)) else {
        return Shape::Unknown;
    };
    let of = |value: &Value| match value {
        Value::String(_) => Shape::Text,
        _ => Shape::Unknown,
    };
    if let Some(Value::Array(values)) = schema.get("enum") {
        return agreed(values.iter().filter(|value| !value.is_null()).map(of));
    }
    if let Some(value) = schema.get("const") {
        return of(value);
    }
    for keyword in ["oneOf", "anyOf", "allOf"] {
        if let Some(Value::Array(parts)) = schema.get(keyword) {
            let real = parts.iter().filter(|part| part.get("type").is_none_or(|kind| kind != "null"));
            return agreed(real.map(|part| shape(root, part, depth)));
        }
    }
    let named = |kind: &Value| match kind.as_str() {
        Some("string") => Shape::Text,
        Some("integer") => Shape::Integer,
        Some("number") => Shape::Number,
        Some("boolean") => Shape::Boolean,
        Some("array") => Shape::List,
        Some("object") => Shape::Object,
        _ => Shape::Unknown,
    };
    match schema.get("type") {
        Some(Value::Array(kinds)) => agreed(kinds.iter().filter(|kind| *kind != "null").map(named)),
        Some(kind) => named(kind),
        None => Shape::Unknown,
    }
}

/// Returns the shape that all of them have.
fn agreed(mut shapes: impl Iterator<Item = Shape>) -> Shape {
    let first = shapes.next().unwrap_or(Shape::Unknown);
    if shapes.all(|shape| shape == first) { first } else { Shape::Unknown }
}

/// Resolves a reference within the schema.
fn resolved<'a>(root: &'a JsonObject, mut schema: &'a Value) -> Option<&'a Value> {
    for _ in 0..DEPTH {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return Some(schema) };
        schema = root.get("$defs")?.get(reference.strip_prefix("#/$defs/")?)?;
    }
    None
}
