use pintle_types::schema::{
    BooleanSchema, EnumItems, EnumOption, EnumSchema, MultiEnumSchema, NumberSchema, PrimitiveSchema,
    StringFormat, StringSchema, TitledEnumItems, TitledEnumSchema, TitledMultiEnumSchema,
};
use serde_json::{Number, Value};

/// A field of a [`Form`](super::Form).
///
/// ```
/// use pintle::server::Field;
///
/// let size = Field::one_of_titled([("s", "Small"), ("l", "Large")]).title("Size").default("s");
/// let age = Field::integer().range(0, 150).description("In years.");
/// ```
#[derive(Clone, Debug)]
pub struct Field {
    schema: PrimitiveSchema,
    fault: Option<String>,
}

impl Field {
    fn new(schema: PrimitiveSchema) -> Self {
        Self { schema, fault: None }
    }

    fn formatted(format: StringFormat) -> Self {
        let mut schema = StringSchema::new();
        schema.format = Some(format);
        Self::new(PrimitiveSchema::String(schema))
    }

    /// Creates a text field.
    pub fn text() -> Self {
        Self::new(PrimitiveSchema::String(StringSchema::new()))
    }

    /// Creates a field for an email address.
    pub fn email() -> Self {
        Self::formatted(StringFormat::Email)
    }

    /// Creates a field for a URI.
    pub fn uri() -> Self {
        Self::formatted(StringFormat::Uri)
    }

    /// Creates a field for a date.
    pub fn date() -> Self {
        Self::formatted(StringFormat::Date)
    }

    /// Creates a field for a date and time.
    pub fn date_time() -> Self {
        Self::formatted(StringFormat::DateTime)
    }

    /// Creates a field for a number.
    pub fn number() -> Self {
        Self::new(PrimitiveSchema::Number(NumberSchema::new()))
    }

    /// Creates a field for an integer.
    pub fn integer() -> Self {
        Self::new(PrimitiveSchema::Integer(NumberSchema::new()))
    }

    /// Creates a field for a boolean.
    pub fn boolean() -> Self {
        Self::new(PrimitiveSchema::Boolean(BooleanSchema::new()))
    }

    /// Creates a choice of one value.
    pub fn one_of<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        Self::new(PrimitiveSchema::Enum(EnumSchema::new(strings(values))))
    }

    /// Creates a choice of one value, shown by title.
    pub fn one_of_titled<V: Into<String>, T: Into<String>>(
        options: impl IntoIterator<Item = (V, T)>,
    ) -> Self {
        Self::new(PrimitiveSchema::TitledEnum(TitledEnumSchema::new(titled(options))))
    }

    /// Creates a choice of any number of values.
    pub fn any_of<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        Self::new(PrimitiveSchema::MultiEnum(MultiEnumSchema::new(EnumItems::new(strings(values)))))
    }

    /// Creates a choice of any number of values, shown by title.
    pub fn any_of_titled<V: Into<String>, T: Into<String>>(
        options: impl IntoIterator<Item = (V, T)>,
    ) -> Self {
        let items = TitledEnumItems::new(titled(options));
        Self::new(PrimitiveSchema::TitledMultiEnum(TitledMultiEnumSchema::new(items)))
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, text: impl Into<String>) -> Self {
        self.edit_labels(|title, _| *title = Some(text.into()));
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.edit_labels(|_, description| *description = Some(text.into()));
        self
    }

    /// Sets the minimum and maximum length of a text, or the number of values that may be chosen.
    #[must_use]
    pub fn length(mut self, min: u32, max: u32) -> Self {
        let (min, max) = (Some(i64::from(min)), Some(i64::from(max)));
        match &mut self.schema {
            PrimitiveSchema::String(schema) => (schema.min_length, schema.max_length) = (min, max),
            PrimitiveSchema::MultiEnum(schema) => (schema.min_items, schema.max_items) = (min, max),
            PrimitiveSchema::TitledMultiEnum(schema) => (schema.min_items, schema.max_items) = (min, max),
            _ => self.fault("has no length: use `Field::text` or `Field::any_of`"),
        }
        self
    }

    /// Sets the minimum and maximum of a number.
    #[must_use]
    pub fn range(mut self, min: impl Into<Number>, max: impl Into<Number>) -> Self {
        match &mut self.schema {
            PrimitiveSchema::Number(schema) | PrimitiveSchema::Integer(schema) => {
                (schema.minimum, schema.maximum) = (Some(min.into()), Some(max.into()));
            }
            _ => self.fault("has no range: use `Field::integer` or `Field::number`"),
        }
        self
    }

    /// Sets the default value.
    #[must_use]
    pub fn default(mut self, value: impl Into<Value>) -> Self {
        let value = value.into();
        let fits = match &mut self.schema {
            PrimitiveSchema::String(schema) => put(&mut schema.default, value),
            PrimitiveSchema::Number(schema) | PrimitiveSchema::Integer(schema) => {
                put(&mut schema.default, value)
            }
            PrimitiveSchema::Boolean(schema) => put(&mut schema.default, value),
            PrimitiveSchema::Enum(schema) => put(&mut schema.default, value),
            PrimitiveSchema::TitledEnum(schema) => put(&mut schema.default, value),
            PrimitiveSchema::MultiEnum(schema) => put(&mut schema.default, value),
            PrimitiveSchema::TitledMultiEnum(schema) => put(&mut schema.default, value),
            _ => false,
        };
        if !fits {
            self.fault("has a default of another type: give one of the field's type");
        }
        self
    }

    pub(super) fn finish(self) -> Result<PrimitiveSchema, String> {
        self.fault.map_or(Ok(self.schema), Err)
    }

    fn edit_labels(&mut self, put: impl FnOnce(&mut Option<String>, &mut Option<String>)) {
        match &mut self.schema {
            PrimitiveSchema::String(schema) => put(&mut schema.title, &mut schema.description),
            PrimitiveSchema::Number(schema) | PrimitiveSchema::Integer(schema) => {
                put(&mut schema.title, &mut schema.description);
            }
            PrimitiveSchema::Boolean(schema) => put(&mut schema.title, &mut schema.description),
            PrimitiveSchema::Enum(schema) => put(&mut schema.title, &mut schema.description),
            PrimitiveSchema::TitledEnum(schema) => put(&mut schema.title, &mut schema.description),
            PrimitiveSchema::MultiEnum(schema) => put(&mut schema.title, &mut schema.description),
            PrimitiveSchema::TitledMultiEnum(schema) => put(&mut schema.title, &mut schema.description),
            // No constructor creates another variant.
            _ => {}
        }
    }

    fn fault(&mut self, reason: &str) {
        let kind = match &self.schema {
            PrimitiveSchema::Number(_) => "a number",
            PrimitiveSchema::Integer(_) => "a whole number",
            PrimitiveSchema::Boolean(_) => "a boolean",
            PrimitiveSchema::String(_) => "text",
            _ => "a choice",
        };
        self.fault.get_or_insert_with(|| format!("is {kind} and {reason}"));
    }
}

/// A field from a schema of the protocol, for options that the constructors do not have.
impl From<PrimitiveSchema> for Field {
    fn from(schema: PrimitiveSchema) -> Self {
        Self::new(schema)
    }
}

fn put<T: serde::de::DeserializeOwned>(slot: &mut Option<T>, value: Value) -> bool {
    *slot = serde_json::from_value(value).ok();
    slot.is_some()
}

fn strings<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Vec<String> {
    values.into_iter().map(Into::into).collect()
}

fn titled<V: Into<String>, T: Into<String>>(options: impl IntoIterator<Item = (V, T)>) -> Vec<EnumOption> {
    options.into_iter().map(|(value, title)| EnumOption::new(value, title)).collect()
}
