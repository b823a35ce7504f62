use pintle_types::schema::{
    BooleanSchema, EnumItems, EnumOption, EnumSchema, MultiEnumSchema, NumberSchema, PrimitiveSchema,
    StringFormat, StringSchema, TitledEnumItems, TitledEnumSchema, TitledMultiEnumSchema,
};
use serde_json::{Number, Value};

/// One field of a [`Form`](super::Form) that is made by hand.
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

    /// Text.
    pub fn text() -> Self {
        Self::new(PrimitiveSchema::String(StringSchema::new()))
    }

    /// A mail address.
    pub fn email() -> Self {
        Self::formatted(StringFormat::Email)
    }

    /// A URI.
    pub fn uri() -> Self {
        Self::formatted(StringFormat::Uri)
    }

    /// A day.
    pub fn date() -> Self {
        Self::formatted(StringFormat::Date)
    }

    /// A day and a time.
    pub fn date_time() -> Self {
        Self::formatted(StringFormat::DateTime)
    }

    /// A number.
    pub fn number() -> Self {
        Self::new(PrimitiveSchema::Number(NumberSchema::new()))
    }

    /// A whole number.
    pub fn integer() -> Self {
        Self::new(PrimitiveSchema::Integer(NumberSchema::new()))
    }

    /// Yes or no.
    pub fn boolean() -> Self {
        Self::new(PrimitiveSchema::Boolean(BooleanSchema::new()))
    }

    /// One of several values.
    pub fn one_of<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        Self::new(PrimitiveSchema::Enum(EnumSchema::new(strings(values))))
    }

    /// One of several values, each shown by its title.
    pub fn one_of_titled<V: Into<String>, T: Into<String>>(
        options: impl IntoIterator<Item = (V, T)>,
    ) -> Self {
        Self::new(PrimitiveSchema::TitledEnum(TitledEnumSchema::new(titled(options))))
    }

    /// Any number of several values.
    pub fn any_of<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        Self::new(PrimitiveSchema::MultiEnum(MultiEnumSchema::new(EnumItems::new(strings(values)))))
    }

    /// Any number of several values, each shown by its title.
    pub fn any_of_titled<V: Into<String>, T: Into<String>>(
        options: impl IntoIterator<Item = (V, T)>,
    ) -> Self {
        let items = TitledEnumItems::new(titled(options));
        Self::new(PrimitiveSchema::TitledMultiEnum(TitledMultiEnumSchema::new(items)))
    }

    /// The name that people see.
    #[must_use]
    pub fn title(mut self, text: impl Into<String>) -> Self {
        self.put_words(|title, _| *title = Some(text.into()));
        self
    }

    /// What goes there.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.put_words(|_, description| *description = Some(text.into()));
        self
    }

    /// From how many characters to how many, or how many values may be chosen.
    #[must_use]
    pub fn length(mut self, least: u32, most: u32) -> Self {
        let (least, most) = (Some(i64::from(least)), Some(i64::from(most)));
        match &mut self.schema {
            PrimitiveSchema::String(schema) => (schema.min_length, schema.max_length) = (least, most),
            PrimitiveSchema::MultiEnum(schema) => (schema.min_items, schema.max_items) = (least, most),
            PrimitiveSchema::TitledMultiEnum(schema) => (schema.min_items, schema.max_items) = (least, most),
            _ => self.wrong("has no length: use `Field::text` or `Field::any_of`"),
        }
        self
    }

    /// From which number to which.
    #[must_use]
    pub fn range(mut self, least: impl Into<Number>, most: impl Into<Number>) -> Self {
        match &mut self.schema {
            PrimitiveSchema::Number(schema) | PrimitiveSchema::Integer(schema) => {
                (schema.minimum, schema.maximum) = (Some(least.into()), Some(most.into()));
            }
            _ => self.wrong("has no range: use `Field::integer` or `Field::number`"),
        }
        self
    }

    /// What stands there before the user has filled it in.
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
            self.wrong("has a default of another type: give it one of its own");
        }
        self
    }

    pub(super) fn finish(self) -> Result<PrimitiveSchema, String> {
        self.fault.map_or(Ok(self.schema), Err)
    }

    fn put_words(&mut self, put: impl FnOnce(&mut Option<String>, &mut Option<String>)) {
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
            // No constructor makes another one.
            _ => {}
        }
    }

    fn wrong(&mut self, said: &str) {
        let kind = match &self.schema {
            PrimitiveSchema::Number(_) => "a number",
            PrimitiveSchema::Integer(_) => "a whole number",
            PrimitiveSchema::Boolean(_) => "a boolean",
            PrimitiveSchema::String(_) => "text",
            _ => "a choice",
        };
        self.fault.get_or_insert_with(|| format!("is {kind} and {said}"));
    }
}

/// A field in the protocol's own words, for what the constructors do not say.
impl From<PrimitiveSchema> for Field {
    fn from(schema: PrimitiveSchema) -> Self {
        Self::new(schema)
    }
}

fn put<T: serde::de::DeserializeOwned>(place: &mut Option<T>, value: Value) -> bool {
    *place = serde_json::from_value(value).ok();
    place.is_some()
}

fn strings<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Vec<String> {
    values.into_iter().map(Into::into).collect()
}

fn titled<V: Into<String>, T: Into<String>>(options: impl IntoIterator<Item = (V, T)>) -> Vec<EnumOption> {
    options.into_iter().map(|(value, title)| EnumOption::new(value, title)).collect()
}
