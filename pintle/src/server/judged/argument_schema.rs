use pintle_types::JsonObject;
use serde_json::Value;

use super::arguments::ArgumentType;

/// The limit of references that lead from one place of a schema to the next.
const MAX_REFERENCES: usize = 16;

/// A place in the schema of a tool, as far as gates look at it: properties, defaults, and `type`, `enum` and `const`. It is silent where it
/// is too wide for that, or unknown.
#[derive(Clone, Copy)]
pub(super) struct ArgumentSchema<'s> {
    root: Option<&'s JsonObject>,
    node: Option<&'s JsonObject>,
}

impl<'s> ArgumentSchema<'s> {
    pub(super) fn new(root: Option<&'s JsonObject>) -> Self {
        Self { root, node: root }
    }

    /// Returns this place and those that it refers to: by a reference, or by one alternative that may be `null` instead.
    fn nodes(self) -> impl Iterator<Item = &'s JsonObject> {
        std::iter::successors(self.node, move |node| {
            let referred = node.get("$ref").and_then(Value::as_str);
            match referred {
                Some(reference) => find(self.root?, reference),
                None => alternatives(node).find_map(|alternatives| {
                    let mut others = alternatives.iter().filter(|other| !is_null(other));
                    others.next().filter(|_| others.next().is_none())?.as_object()
                }),
            }
        })
        .take(MAX_REFERENCES)
    }

    fn keyword(self, name: &str) -> Option<&'s Value> {
        self.nodes().find_map(|node| node.get(name))
    }

    fn at(self, node: Option<&'s Value>) -> Self {
        Self { node: node.and_then(Value::as_object), ..self }
    }

    /// Returns whether an object has a property of this name.
    pub(super) fn lists(self, name: &str) -> bool {
        self.keyword("properties").is_some_and(|properties| properties.get(name).is_some())
    }

    pub(super) fn property(self, name: &str) -> Self {
        self.at(self.keyword("properties").and_then(|properties| properties.get(name)))
    }

    pub(super) fn items(self) -> Self {
        self.at(self.keyword("items"))
    }

    /// Returns the default. That of `null` is none.
    pub(super) fn default(self) -> Option<&'s Value> {
        self.keyword("default").filter(|default| !default.is_null())
    }

    /// Returns the names of the types that are stated; none if it is silent.
    fn types(self) -> Vec<&'s str> {
        let mut types: Vec<&str> = match self.keyword("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => return Vec::new(),
        };
        if self.nodes().any(|node| alternatives(node).flatten().any(is_null)) {
            types.push("null");
        }
        types
    }

    /// Returns whether this type is stated.
    pub(super) fn states(self, name: &str) -> bool {
        self.types().contains(&name)
    }

    /// Compares a value with `type`, `enum` and `const`.
    ///
    /// # Errors
    ///
    /// The value is another one. The error says what to send.
    pub(super) fn check(self, value: &Value) -> Result<(), String> {
        let types = self.types();
        if !types.is_empty() && !types.iter().any(|name| is_of(value, name)) {
            return Err(types.iter().map(|name| noun(name)).collect::<Vec<_>>().join(" or "));
        }
        let one_of = match (self.keyword("enum"), self.keyword("const")) {
            (Some(Value::Array(values)), _) => values.as_slice(),
            (_, Some(value)) => std::slice::from_ref(value),
            _ => return Ok(()),
        };
        if one_of.iter().any(|known| known == value || is_same_number(known, value)) {
            return Ok(());
        }
        let known: Vec<_> = one_of.iter().take(8).map(|known| format!("`{known}`")).collect();
        Err(format!("one of {}", known.join(", ").chars().take(200).collect::<String>()))
    }
}

fn alternatives(node: &JsonObject) -> impl Iterator<Item = &Vec<Value>> {
    ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|name| node.get(name)?.as_array())
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|name| name == "null")
}

/// Returns the place that a reference within the schema leads to.
fn find<'s>(root: &'s JsonObject, reference: &str) -> Option<&'s JsonObject> {
    let mut path = reference.strip_prefix('#')?.split('/').skip(1);
    let Some(first) = path.next() else { return Some(root) };
    path.try_fold(root.get(first)?, |at, name| at.get(name))?.as_object()
}

/// Returns the type of a name in a schema. JSON Schema has no others.
fn known_type(name: &str) -> Option<ArgumentType> {
    Some(match name {
        "null" => ArgumentType::Null,
        "boolean" => ArgumentType::Boolean,
        "number" | "integer" => ArgumentType::Number,
        "string" => ArgumentType::String,
        "array" => ArgumentType::Array,
        "object" => ArgumentType::Object,
        _ => return None,
    })
}

fn is_of(value: &Value, name: &str) -> bool {
    let is_integer = || value.as_f64().is_some_and(|number| number.fract() == 0.0);
    known_type(name).is_none_or(|known| known == ArgumentType::of(value))
        && (name != "integer" || is_integer())
}

fn noun(name: &str) -> &'static str {
    match known_type(name) {
        _ if name == "integer" => "an integer",
        Some(known) => known.noun(),
        None => "another value",
    }
}

fn is_same_number(one: &Value, other: &Value) -> bool {
    one.is_number() && one.as_f64() == other.as_f64()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns which of the values a schema takes.
    fn taken(schema: &Value, values: &[Value]) -> Vec<Value> {
        let root = schema.as_object().unwrap();
        let takes = |value: &&Value| ArgumentSchema::new(Some(root)).check(value).is_ok();
        values.iter().filter(takes).cloned().collect()
    }

    fn each_type() -> [Value; 8] {
        [json!(null), json!(true), json!(1), json!(2.0), json!(1.5), json!("1"), json!([]), json!({})]
    }

    #[test]
    fn a_value_has_a_type_that_is_stated() {
        let all = json!(each_type());
        for (types, values) in [
            (json!("null"), json!([null])),
            (json!("boolean"), json!([true])),
            (json!("integer"), json!([1, 2.0])),
            (json!("number"), json!([1, 2.0, 1.5])),
            (json!("string"), json!(["1"])),
            (json!("array"), json!([[]])),
            (json!("object"), json!([{}])),
            (json!(["string", "null"]), json!([null, "1"])),
            // What is no type says nothing.
            (json!("any"), all.clone()),
            (json!(7), all.clone()),
        ] {
            assert_eq!(json!(taken(&json!({"type": types}), &each_type())), values, "{types}");
        }
        let root = json!({"type": ["integer", "string"]});
        let schema = ArgumentSchema::new(root.as_object());
        assert_eq!(schema.check(&json!(true)).unwrap_err(), "an integer or a string");
    }

    #[test]
    fn the_type_of_one_alternative_counts_and_null_beside_it() {
        let all = json!(each_type());
        for kind in ["anyOf", "oneOf", "allOf"] {
            for (alternatives, values) in [
                (json!([{"type": "string"}, {"type": "null"}]), json!([null, "1"])),
                (json!([{"type": "null"}, {"type": "boolean"}]), json!([null, true])),
                (json!([{"type": "string"}]), json!(["1"])),
                // Nobody looks at several.
                (json!([{"type": "string"}, {"type": "number"}]), all.clone()),
            ] {
                assert_eq!(json!(taken(&json!({ kind: alternatives }), &each_type())), values, "{kind}");
            }
        }
        let referred =
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "string"}}});
        assert_eq!(taken(&referred, &each_type()), ["1"]);
        for endless in [json!({"$ref": "#"}), json!({"$ref": "#/$defs/none"}), json!({"$ref": "http://a"})] {
            assert_eq!(json!(taken(&endless, &each_type())), all);
        }
    }

    #[test]
    fn a_value_is_one_of_those_that_are_named() {
        let values = [json!(1), json!(1.0), json!(2), json!("1"), json!("a"), json!(null)];
        for (schema, taken_of) in [
            (json!({"enum": [1, "a"]}), json!([1, 1.0, "a"])),
            (json!({"const": 1.0}), json!([1, 1.0])),
            (json!({"const": "a"}), json!(["a"])),
            (json!({"const": null}), json!([null])),
            (json!({"enum": ["a"], "const": "b"}), json!(["a"])),
            (json!({"type": "string", "enum": [1, "a"]}), json!(["a"])),
        ] {
            assert_eq!(json!(taken(&schema, &values)), taken_of, "{schema}");
        }
    }
}
