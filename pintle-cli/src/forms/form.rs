use pintle::types::{JsonObject, schema::ElicitFormParams};

use super::{
    field::{Field, FieldKind},
    given::GivenAnswers,
};

/// A form that a server asks the user to fill in.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) message: String,
    pub(super) fields: Vec<Field>,
}

/// A form after the given answers were filled in.
pub(super) enum Filled {
    /// Every required field has a value, and at least one was given.
    Whole(JsonObject),
    /// Fields without a value remain to be asked for.
    Partly(JsonObject),
}

impl Form {
    pub(super) fn new(params: &ElicitFormParams) -> Self {
        let schema = &params.requested_schema;
        let required = schema.required.as_deref().unwrap_or_default();
        let fields = schema
            .properties
            .iter()
            .map(|(name, schema)| Field::new(name, schema, required.iter().any(|other| other == name)));
        Self { message: params.message.clone(), fields: fields.collect() }
    }

    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_str())
    }

    /// Fills in the form with the given answers. The error is for the one who gave them.
    pub(super) fn fill(&self, given: &GivenAnswers) -> Result<Filled, String> {
        let values = given.values_of(self)?;
        let missing = |field: &&Field| field.required && field.default.is_none();
        let missing = self.fields.iter().filter(missing).any(|field| !values.contains_key(&field.name));
        match !missing && !values.is_empty() {
            true => Ok(Filled::Whole(values)),
            false => Ok(Filled::Partly(values)),
        }
    }

    /// Describes the fields for those who cannot be asked, one a line: `nights: an integer from 1 to 14, required`.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |field: &Field| {
            let mut line = format!("{}: {}", field.name, field.expected());
            match (&field.default, field.required) {
                (Some(default), _) => line.push_str(&format!(", default {}", super::field::bare(default))),
                (None, true) => line.push_str(", required"),
                (None, false) => {}
            }
            let about = field.description.as_ref().or(field.title.as_ref());
            if let Some(about) = about {
                line.push_str(&format!(" ({})", about.lines().next().unwrap_or_default()));
            }
            line
        };
        self.fields.iter().map(line).collect()
    }

    /// Returns words that answer the required fields, or else all.
    pub(super) fn examples(&self) -> Vec<String> {
        let is_required = |field: &&Field| field.required && field.default.is_none();
        let required: Vec<_> = self.fields.iter().filter(is_required).map(Field::example).collect();
        match required.is_empty() {
            true => self.fields.iter().take(3).map(Field::example).collect(),
            false => required,
        }
    }
}

impl Field {
    /// Whether several values are collected into a list.
    pub(super) fn is_list(&self) -> bool {
        matches!(self.kind, FieldKind::Choices { .. })
    }
}
