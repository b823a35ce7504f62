use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::PrimitiveSchema;
use crate::JsonObject;

/// The fields of a form: a flat object of primitive schemas.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ElicitSchema {
    /// The dialect of JSON Schema, if declared.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// The type, always `object`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The fields, in the order in which they are to be shown.
    pub properties: Properties,
    /// The names of the required fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<Vec<String>>,
    /// Keywords that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl ElicitSchema {
    /// Creates a form without fields.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Default for ElicitSchema {
    fn default() -> Self {
        Self {
            dialect: None,
            kind: "object".to_owned(),
            properties: Properties::new(),
            required: None,
            extra: JsonObject::new(),
        }
    }
}

/// The fields of a form, in the order in which they are to be shown.
///
/// The order means nothing in JSON, but clients show the fields in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties(Vec<(String, PrimitiveSchema)>);

impl Properties {
    /// Creates a list without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field at the end, or replaces the one of that name.
    pub fn insert(&mut self, name: impl Into<String>, schema: PrimitiveSchema) {
        let name = name.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = schema,
            None => self.0.push((name, schema)),
        }
    }

    /// Returns the field `name`.
    pub fn get(&self, name: &str) -> Option<&PrimitiveSchema> {
        self.iter().find_map(|(known, schema)| (known == name).then_some(schema))
    }

    /// Iterates over the fields in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &PrimitiveSchema)> {
        self.0.iter().map(|(name, schema)| (name.as_str(), schema))
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Properties {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PropertiesVisitor)
    }
}

struct PropertiesVisitor;

impl<'de> de::Visitor<'de> for PropertiesVisitor {
    type Value = Properties;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of schemas")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Properties, A::Error> {
        // An index, because a peer may send any number of fields and the same one twice.
        let (mut fields, mut index) = (Vec::new(), BTreeMap::new());
        while let Some((name, schema)) = map.next_entry::<String, PrimitiveSchema>()? {
            match index.get(&name) {
                Some(&at) => fields[at] = (name, schema),
                None => {
                    index.insert(name.clone(), fields.len());
                    fields.push((name, schema));
                }
            }
        }
        Ok(Properties(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_order() {
        let text = r#"{"zip":{"type":"string"},"age":{"type":"integer"},"mail":{"type":"boolean"}}"#;
        let mut properties: Properties = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&properties).unwrap(), text);
        properties.insert("age", PrimitiveSchema::Boolean(Default::default()));
        assert_eq!(properties.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["zip", "age", "mail"]);
        assert!(matches!(properties.get("age"), Some(PrimitiveSchema::Boolean(_))));
    }

    #[test]
    fn the_last_of_two_counts() {
        let text = r#"{"a":{"type":"string"},"b":{"type":"string"},"a":{"type":"boolean"}}"#;
        let properties: Properties = serde_json::from_str(text).unwrap();
        assert_eq!(properties.len(), 2);
        assert!(matches!(properties.get("a"), Some(PrimitiveSchema::Boolean(_))));
    }
}
