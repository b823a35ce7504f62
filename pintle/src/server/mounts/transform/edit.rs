use std::sync::Arc;

use pintle_types::{JsonObject, RawObject, RawValue};
use serde_json::{Value, value::to_raw_value};

use crate::server::{ListKind, judged::arguments::ArgumentEdits};

/// The changes that a [`Transform`](crate::server::Transform) makes to one entry.
///
/// ```
/// use pintle::server::EntryEdit;
///
/// let publish = EntryEdit::new()
///     .rename("publish")
///     .describe("Publish a branch.")
///     .fix("force", false)
///     .default_value("branch", "main");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntryEdit {
    pub(super) name: Option<String>,
    title: Option<String>,
    description: Option<String>,
    pub(super) hidden: bool,
    pub(super) arguments: Arc<ArgumentEdits>,
}

impl EntryEdit {
    /// Creates an edit that changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a tool or prompt another name. The old one is unknown then.
    #[must_use]
    pub fn rename(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Replaces the title.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// Replaces the description.
    #[must_use]
    pub fn describe(self, description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..self }
    }

    /// Removes the entry: it is in no list, and cannot be used.
    #[must_use]
    pub fn hide(self) -> Self {
        Self { hidden: true, ..self }
    }

    /// Sets an argument of a tool to a value. It is not in the schema, and callers that send it are refused.
    #[must_use]
    pub fn fix(mut self, argument: impl Into<String>, value: impl Into<Value>) -> Self {
        Arc::make_mut(&mut self.arguments).fixed.insert(argument.into(), value.into());
        self
    }

    /// Sets the value of an argument of a tool that callers omit. In the schema it is not required, and has this default.
    #[must_use]
    pub fn default_value(mut self, argument: impl Into<String>, value: impl Into<Value>) -> Self {
        Arc::make_mut(&mut self.arguments).defaults.insert(argument.into(), value.into());
        self
    }

    /// Returns an entry of a list with the changes.
    pub(super) fn apply(&self, list: ListKind, entry: &RawObject) -> Result<RawObject, serde_json::Error> {
        let mut entry = entry.clone();
        let texts = [("title", &self.title), ("description", &self.description)];
        let name = if matches!(list, ListKind::Tools | ListKind::Prompts) { &self.name } else { &None };
        for (member, text) in texts.into_iter().chain([("name", name)]) {
            if let Some(text) = text {
                entry = entry.with(member, &to_raw_value(text)?);
            }
        }
        if list == ListKind::Tools && !self.arguments.is_empty() {
            let schema: Option<JsonObject> = entry.decode_member("inputSchema")?;
            if let Some(mut schema) = schema {
                self.apply_to_schema(&mut schema);
                entry = entry.with("inputSchema", &to_raw_value(&schema)?);
            }
        }
        Ok(entry)
    }

    fn apply_to_schema(&self, schema: &mut JsonObject) {
        let ArgumentEdits { fixed, defaults } = &*self.arguments;
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.retain(|name, _| !fixed.contains_key(name));
            for (name, value) in defaults {
                if let Some(Value::Object(property)) = properties.get_mut(name) {
                    property.insert("default".to_owned(), value.clone());
                }
            }
        }
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.retain(|name| {
                !name.as_str().is_some_and(|name| fixed.contains_key(name) || defaults.contains_key(name))
            });
        }
    }

    /// Returns the arguments of a call as the provider gets them, or what is wrong with them.
    pub(super) fn sent_arguments(&self, sent: Option<&str>) -> Result<Option<Box<RawValue>>, String> {
        if self.arguments.is_empty() {
            return Ok(None);
        }
        let invalid =
            |error: serde_json::Error| format!("`arguments`: {}", pintle_types::plain_error(&error));
        let sent = sent.filter(|text| *text != "null").unwrap_or("{}");
        let sent: RawObject = serde_json::from_str(sent).map_err(invalid)?;
        self.arguments.check(sent.iter().map(|(name, _)| name))?;
        let mut arguments = sent.clone();
        for (name, value) in self.arguments.added(|name| sent.get(name).is_some()) {
            arguments = arguments.with(name, &to_raw_value(value).map_err(invalid)?);
        }
        to_raw_value(&arguments).map(Some).map_err(invalid)
    }
}
