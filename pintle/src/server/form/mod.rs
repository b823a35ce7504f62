//! Forms that a client shows its user, created from a type or field by field.

mod check;
mod error;
mod field;
mod format;
mod reduce;

use std::{
    any::TypeId,
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use pintle_types::{
    JsonObject,
    schema::{ElicitSchema, PrimitiveSchema},
};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::{DeserializeOwned, value::MapDeserializer};
use serde_json::{Number, Value};

pub use error::FormError;
pub use field::Field;

/// A form for a user to fill in: named fields in display order.
///
/// [`Cx::elicit`](crate::server::Cx::elicit) creates one from a type. Build one field by field if its fields are known only at
/// run time:
///
/// ```
/// use pintle::server::{Field, Form};
///
/// let seats = ["12A", "12C"];
/// let form = Form::new()
///     .field("seat", Field::one_of(seats).title("Seat"))
///     .field("bags", Field::integer().range(0, 3).default(1))
///     .optional("note", Field::text().length(0, 200));
/// # assert!(form.check().is_ok());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Form {
    schema: ElicitSchema,
    /// The first fault of the fields that were added.
    fault: Option<FormError>,
    /// Whether the form is that of `()`, without fields.
    unit: bool,
}

impl Form {
    /// Creates a form without fields, which the user can only accept or decline.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the form of a struct. Doc comments become descriptions; fields with `Option` or `#[serde(default)]` are optional.
    ///
    /// # Errors
    ///
    /// Returns an error if a field cannot be part of a form; it names the field and an alternative.
    pub fn of<T: DeserializeOwned + JsonSchema>() -> Result<Self, FormError> {
        let mut settings = SchemaSettings::draft2020_12();
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
        if schema.get("type").is_some_and(|kind| kind == "null") {
            return Ok(Self { unit: true, ..Self::default() });
        }
        let schema = reduce::object(&T::schema_name(), schema)?;
        Ok(Self { schema, ..Self::default() })
    }

    /// Creates the form of the JSON Schema of an object, whose properties are texts, numbers, booleans or choices.
    ///
    /// ```
    /// use pintle::server::Form;
    /// use serde_json::json;
    ///
    /// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    /// assert_eq!(Form::from_schema(&schema)?.schema().required, Some(vec!["city".to_owned()]));
    /// # Ok::<(), pintle::server::FormError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if a property cannot be part of a form; it names the property and an alternative.
    pub fn from_schema(schema: &Value) -> Result<Self, FormError> {
        Ok(Self { schema: reduce::object("form", schema.clone())?, ..Self::default() })
    }

    /// Adds a required field.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, field: Field) -> Self {
        let name = name.into();
        let required = self.schema.required.get_or_insert_default();
        if !required.contains(&name) {
            required.push(name.clone());
        }
        self.optional(name, field)
    }

    /// Adds an optional field.
    #[must_use]
    pub fn optional(mut self, name: impl Into<String>, field: Field) -> Self {
        let name = name.into();
        match field.finish() {
            Ok(schema) => self.schema.properties.insert(name, schema),
            Err(reason) => drop(self.fault.get_or_insert_with(|| FormError::of_field("form", &name, reason))),
        }
        self
    }

    /// Checks the fields of the form.
    ///
    /// # Errors
    ///
    /// Returns the first fault.
    pub fn check(&self) -> Result<(), FormError> {
        self.fault.clone().map_or(Ok(()), Err)
    }

    /// Returns the schema of the form.
    pub fn schema(&self) -> &ElicitSchema {
        &self.schema
    }

    /// Checks the content against the form. The error names the field and the reason.
    pub(crate) fn fits(&self, content: &JsonObject) -> Result<(), String> {
        check::fits(&self.schema, content)
    }

    /// Decodes the content. The error names the field and the reason.
    pub(crate) fn read<T: DeserializeOwned>(&self, mut content: JsonObject) -> Result<T, String> {
        if self.unit {
            return T::deserialize(Value::Null).map_err(|error| error.to_string());
        }
        self.fits(&content)?;
        for (name, schema) in self.schema.properties.iter() {
            if let (PrimitiveSchema::Integer(_), Some(value)) = (schema, content.get_mut(name)) {
                drop_zero_fraction(value);
            }
        }
        let mut current = None;
        let fields = content.iter().map(|(name, value)| {
            current = Some(name);
            (name.as_str(), value)
        });
        match T::deserialize(MapDeserializer::new(fields)) {
            Ok(value) => Ok(value),
            // A wrapper around the struct takes the object as a whole.
            Err(error) => T::deserialize(Value::Object(content.clone())).map_err(|_| match current {
                Some(name) => format!("`{name}`: {error}"),
                None => error.to_string(),
            }),
        }
    }
}

/// Turns `2.0` into `2`: some clients print every number with a fraction.
fn drop_zero_fraction(value: &mut Value) {
    if let Some(float) = value.as_f64().filter(|float| value.as_i64().is_none() && float.fract() == 0.0)
        && let Ok(Value::Number(number)) = serde_json::from_str(&format!("{float:.0}"))
        && number.as_i64().is_some()
    {
        *value = Value::Number(Number::clone(&number));
    }
}

/// A cache of the forms of types, bounded by the number of types in the program.
#[derive(Debug, Default)]
pub(crate) struct FormCache(RwLock<HashMap<TypeId, Arc<Result<Form, FormError>>>>);

impl FormCache {
    pub(crate) fn of<T: DeserializeOwned + JsonSchema + 'static>(&self) -> Arc<Result<Form, FormError>> {
        let key = TypeId::of::<T>();
        let cached = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        cached.unwrap_or_else(|| {
            let form = Arc::new(Form::of::<T>());
            self.0.write().unwrap_or_else(PoisonError::into_inner).insert(key, form.clone());
            form
        })
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    /// Where to send it.
    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    struct Order {
        /// For the label.
        #[schemars(length(min = 1, max = 40))]
        recipient: String,
        #[schemars(email)]
        mail: Option<String>,
        #[schemars(range(min = 1, max = 9))]
        #[serde(default = "one")]
        count: u8,
        gift: bool,
        speed: Speed,
        #[serde(default)]
        extras: Vec<Extra>,
        price: Option<f64>,
        fallback: Option<Speed>,
    }

    fn one() -> u8 {
        1
    }

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    #[serde(rename_all = "kebab-case")]
    enum Speed {
        /// By ship
        SlowBoat,
        /// By air
        Plane,
    }

    #[derive(Debug, Deserialize, JsonSchema, PartialEq, serde::Serialize)]
    enum Extra {
        Wrap,
        #[serde(rename = "card")]
        Card,
    }

    #[test]
    fn a_form_has_the_fields_of_its_struct_in_order() {
        let form = Form::of::<Order>().unwrap();
        let printed = serde_json::to_string(form.schema()).unwrap();
        let speeds =
            r#""oneOf":[{"const":"slow-boat","title":"By ship"},{"const":"plane","title":"By air"}]"#;
        let expected = [
            r#"{"type":"object","properties":{"#,
            r#""recipient":{"type":"string","description":"For the label.","minLength":1,"maxLength":40},"#,
            r#""mail":{"type":"string","format":"email"},"#,
            r#""count":{"type":"integer","minimum":1,"maximum":9,"default":1},"#,
            r#""gift":{"type":"boolean"},"#,
            &format!(r#""speed":{{"type":"string",{speeds}}},"#),
            r#""extras":{"type":"array","items":{"type":"string","enum":["Wrap","card"]},"default":[]},"#,
            r#""price":{"type":"number"},"#,
            &format!(r#""fallback":{{"type":"string",{speeds}}}}},"#),
            r#""required":["recipient","gift","speed"]}"#,
        ];
        assert_eq!(printed, expected.concat());
    }

    #[test]
    fn content_is_decoded_and_faults_name_their_field() {
        let form = Form::of::<Order>().unwrap();
        let read = |value: Value| form.read::<Order>(value.as_object().unwrap().clone());
        let fits =
            json!({"recipient": "Ann", "count": 2.0, "gift": true, "speed": "plane", "extras": ["card"]});
        let order = read(fits.clone()).unwrap();
        assert_eq!((order.count, order.speed, order.extras), (2, Speed::Plane, vec![Extra::Card]));
        for (field, value, message) in [
            ("recipient", json!(""), "`recipient` has 0 characters and needs at least 1"),
            ("recipient", json!(7), "`recipient` is not a string: `7`"),
            ("count", json!(10), "`count` is `10` and may be at most 9"),
            ("count", json!(1.5), "`count` is not a whole number: `1.5`"),
            ("gift", json!("yes"), "`gift` is not a boolean: `\"yes\"`"),
            ("speed", json!("mule"), "`speed` is `mule` and should be one of `slow-boat`, `plane`"),
            ("extras", json!(["card", "x"]), "`extras` is `x` and should be one of `Wrap`, `card`"),
            ("recipient", Value::Null, "`recipient` is missing"),
        ] {
            let mut answer = fits.clone();
            answer[field] = value;
            assert_eq!(read(answer).unwrap_err(), message);
        }
    }

    #[test]
    fn types_that_cannot_be_a_form_are_refused_with_an_alternative() {
        #[derive(Debug, Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its shape matters")]
        struct Nested<T> {
            inner: T,
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its shape matters")]
        enum Data {
            A { x: u8 },
            B,
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its shape matters")]
        struct Patterned {
            #[schemars(regex(pattern = "^a"))]
            word: String,
        }
        fn error_of<T: DeserializeOwned + JsonSchema>() -> (Option<String>, String) {
            let error = Form::of::<T>().unwrap_err();
            (error.field().map(str::to_owned), error.to_string())
        }
        let (field, text) = error_of::<Nested<Nested<u8>>>();
        assert_eq!(field.as_deref(), Some("inner"));
        assert!(
            text.ends_with("field `inner` is an object: ask for its parts as fields of their own"),
            "{text}"
        );
        assert!(
            error_of::<Nested<Vec<String>>>().1.contains("is a list of free values: use a list of an enum")
        );
        assert!(
            error_of::<Nested<Data>>().1.contains("variants with data"),
            "{}",
            error_of::<Nested<Data>>().1
        );
        assert!(error_of::<Nested<serde_json::Value>>().1.contains("can be anything"));
        assert!(error_of::<Patterned>().1.contains("field `word` has a `pattern`"));
        assert!(
            error_of::<String>().1.contains("wrap it in a struct with one field"),
            "{}",
            error_of::<String>().1
        );
        assert!(error_of::<HashMap<String, String>>().1.contains("has no named fields"));
    }

    #[test]
    fn the_unit_type_is_a_form_without_fields() {
        let form = Form::of::<()>().unwrap();
        assert!(form.schema().properties.is_empty());
        form.read::<()>(JsonObject::new()).unwrap();
    }

    #[test]
    fn a_field_with_an_option_of_another_kind_is_refused() {
        let form = Form::new().field("a", Field::boolean().range(1, 2));
        assert_eq!(
            form.check().unwrap_err().to_string(),
            "`form` cannot be a form: field `a` is a boolean and has no range: use `Field::integer` or `Field::number`"
        );
    }
}
