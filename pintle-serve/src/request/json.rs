use std::collections::BTreeMap;

use pintle::types::JsonObject;
use serde_json::Value;

use crate::{
    argument::Argument,
    text::{Part, Text},
};

/// A JSON value with places.
#[derive(Debug)]
pub(super) enum JsonTemplate {
    /// A value without places.
    Value(Value),
    Text(Text),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl JsonTemplate {
    pub(super) fn read(value: &Value, arguments: &BTreeMap<String, Argument>) -> Result<Self, String> {
        let read = |value| Self::read(value, arguments);
        Ok(match value {
            Value::String(text) => Self::Text(Text::read(text, arguments, true)?),
            Value::Array(items) => Self::List(items.iter().map(read).collect::<Result<_, _>>()?),
            Value::Object(members) => {
                let members = members.iter().map(|(name, value)| Ok((name.clone(), read(value)?)));
                Self::Object(members.collect::<Result<_, String>>()?)
            }
            value => Self::Value(value.clone()),
        })
    }

    pub(super) fn names(&self) -> Vec<&str> {
        match self {
            Self::Value(_) => Vec::new(),
            Self::Text(text) => text.names().collect(),
            Self::List(items) => items.iter().flat_map(Self::names).collect(),
            Self::Object(members) => members.iter().flat_map(|(_, value)| value.names()).collect(),
        }
    }

    /// Returns the value of a call; `None` if an argument is left out.
    pub(super) fn fill(&self, arguments: &JsonObject) -> Option<Value> {
        Some(match self {
            Self::Value(value) => value.clone(),
            Self::Text(text) => match &text.0[..] {
                [Part::Place(place)] if place.text.is_none() => arguments.get(&place.name)?.clone(),
                _ => text.texts(arguments).pop()?.into(),
            },
            Self::List(items) => items.iter().filter_map(|item| item.fill(arguments)).collect(),
            Self::Object(members) => {
                let given = members.iter().filter_map(|(name, value)| Some((name, value.fill(arguments)?)));
                Value::Object(given.map(|(name, value)| (name.clone(), value)).collect())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ArgumentEntry;

    #[test]
    fn places_become_values_of_their_types() {
        let types = [("n", "integer?"), ("l", "string[]?"), ("t", "string?"), ("f", "boolean?")];
        let entry = |kind: &str| ArgumentEntry::Brief(kind.to_owned()).argument().unwrap();
        let arguments = types.map(|(name, kind)| (name.to_owned(), entry(kind))).into();
        let body =
            json!({"n": "{n}", "in": {"l": "{l}", "t": "<{t}>"}, "all": ["{t}", 1, "{f?on}"], "b": "{{}}"});
        let template = JsonTemplate::read(&body, &arguments).unwrap();
        let fill = |arguments: Value| template.fill(arguments.as_object().unwrap()).unwrap();
        let hostile = "\", \"admin\": true, \"x\": \"";
        assert_eq!(
            fill(json!({"n": 3, "l": ["a"], "t": hostile, "f": true})),
            json!({"n": 3, "in": {"l": ["a"], "t": format!("<{hostile}>")}, "all": [hostile, 1, "on"], "b": "{}"})
        );
        assert_eq!(fill(json!({"f": false})), json!({"in": {}, "all": [1], "b": "{}"}));
        assert_eq!(template.names(), ["n", "l", "t", "t", "f"]);
        for wrong in [json!("{x}"), json!(["a{l}"]), json!({"a": "{n"})] {
            assert!(JsonTemplate::read(&wrong, &arguments).is_err(), "{wrong}");
        }
    }
}
