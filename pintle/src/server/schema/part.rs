use std::{mem, sync::Arc};

use pintle_types::JsonObject;
use pintle_uri::nearest;
use serde_json::{Map, Value};

/// The limit on references that are followed in a row.
const MAX_REFERENCES: usize = 32;

/// A builder for a part of a tool's schema.
///
/// [`ToolRoute::input`](crate::server::ToolRoute::input) and [`output`](crate::server::ToolRoute::output) pass the whole schema, which
/// was generated from a type; [`property`](Self::property), [`items`](Self::items) and [`entries`](Self::entries) select a part of
/// it. An edit applies to that part only, even if several parts share a type. Selecting a property that does not exist is an
/// error when the tool is added, and so is an invalid value of a keyword.
///
/// ```
/// use pintle::server::{Args, Server, tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Search {
///     query: String,
///     count: u32,
///     tags: Option<Vec<String>>,
/// }
///
/// let search = tool("search", |Args(search): Args<Search>| async move { search.query }).input(|schema| {
///     schema
///         .property("query", |query| query.description("What to look for.").min_length(2).example("boats"))
///         .property("count", |count| count.minimum(1).maximum(50).default(10))
///         .property("tags", |tags| tags.max_items(3).items(|tag| tag.one_of(["old", "new"])))
///         .deny_unknown()
/// });
/// Server::new("library", "1.0.0").tool(search).check()?;
/// # Ok::<(), pintle::Error>(())
/// ```
///
/// A tool that decodes its arguments itself has no type to start from; [`add`](Self::add) creates its properties:
///
/// ```
/// use pintle::server::{Arguments, tool};
///
/// let echo = tool("echo", |Arguments(arguments)| async move { arguments.as_str().to_owned() })
///     .input(|schema| schema.add("text", |text| text.string().description("What to say.").required()));
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct SchemaPart {
    schema: JsonObject,
    /// The whole schema before the edits.
    root: Arc<Value>,
    /// The JSON pointer to the values of this part.
    pointer: String,
    required: Option<bool>,
    pub(crate) edits: SchemaEdits,
}

/// The effects of the edits of a schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct SchemaEdits {
    /// Predicates that follow "the input schema of `x`" in a message.
    pub(crate) faults: Vec<String>,
    /// Whether the edits added constraints.
    pub(crate) stricter: bool,
    /// Whether the edits added a default.
    pub(crate) defaults: bool,
}

impl SchemaPart {
    pub(crate) fn root(schema: JsonObject) -> Self {
        let root = Arc::new(Value::Object(schema.clone()));
        Self { schema, root, pointer: String::new(), required: None, edits: SchemaEdits::default() }
    }

    /// Returns the schema and the effects of the edits.
    pub(crate) fn finish(mut self) -> (JsonObject, SchemaEdits) {
        if self.required.is_some() {
            self.fault(
                "is always present as a whole: use `required` and `optional` for its properties".to_owned(),
            );
        }
        (self.schema, self.edits)
    }

    /// Sets the display name.
    pub fn title(self, text: impl Into<String>) -> Self {
        self.annotate("title", text.into())
    }

    /// Sets the description, which the model reads.
    pub fn description(self, text: impl Into<String>) -> Self {
        self.annotate("description", text.into())
    }

    /// Sets the format of the values, such as `uri` or `date-time`. This is an annotation; values are not checked.
    pub fn format(self, format: impl Into<String>) -> Self {
        self.annotate("format", format.into())
    }

    /// Marks the part as deprecated.
    pub fn deprecated(self) -> Self {
        self.annotate("deprecated", true)
    }

    /// Adds an example.
    pub fn example(mut self, value: impl Into<Value>) -> Self {
        let examples = self.schema.entry("examples").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(examples) = examples {
            examples.push(value.into());
        }
        self
    }

    /// Sets the default value and makes the part optional.
    ///
    /// With the feature `validation`, the default is filled in before the arguments are decoded. Nothing is filled into an
    /// object that was omitted itself.
    pub fn default(mut self, value: impl Into<Value>) -> Self {
        self.edits.defaults = true;
        self.required = Some(false);
        self.annotate("default", value)
    }

    /// Makes the part required.
    pub fn required(mut self) -> Self {
        self.edits.stricter = true;
        self.required = Some(true);
        self
    }

    /// Makes the part optional. If the handler takes a type, the type has to allow that.
    pub fn optional(mut self) -> Self {
        self.required = Some(false);
        self
    }

    /// Restricts the value to these.
    pub fn one_of<T: Into<Value>>(mut self, values: impl IntoIterator<Item = T>) -> Self {
        let mut values: Vec<Value> = values.into_iter().map(Into::into).collect();
        let untyped =
            ["type", "$ref", "anyOf", "oneOf", "allOf"].iter().all(|name| !self.schema.contains_key(*name));
        if untyped && values.iter().all(Value::is_string) {
            self.schema.insert("type".to_owned(), "string".into());
        }
        if self.takes_null() {
            values.push(Value::Null);
        }
        self.set("enum", values)
    }

    /// Restricts a text to those that match this regular expression. Look-around and back-references are not supported.
    pub fn pattern(self, pattern: impl Into<String>) -> Self {
        self.set("pattern", pattern.into())
    }

    /// Sets the minimum of a number.
    pub fn minimum(self, min: impl Into<Value>) -> Self {
        self.set("minimum", min)
    }

    /// Sets the maximum of a number.
    pub fn maximum(self, max: impl Into<Value>) -> Self {
        self.set("maximum", max)
    }

    /// Sets the exclusive minimum of a number.
    pub fn exclusive_minimum(self, bound: impl Into<Value>) -> Self {
        self.set("exclusiveMinimum", bound)
    }

    /// Sets the exclusive maximum of a number.
    pub fn exclusive_maximum(self, bound: impl Into<Value>) -> Self {
        self.set("exclusiveMaximum", bound)
    }

    /// Restricts a number to multiples of this.
    pub fn multiple_of(self, step: impl Into<Value>) -> Self {
        self.set("multipleOf", step)
    }

    /// Sets the minimum length of a text in characters.
    pub fn min_length(self, characters: usize) -> Self {
        self.set("minLength", characters)
    }

    /// Sets the maximum length of a text in characters.
    pub fn max_length(self, characters: usize) -> Self {
        self.set("maxLength", characters)
    }

    /// Sets the minimum length of a list.
    pub fn min_items(self, items: usize) -> Self {
        self.set("minItems", items)
    }

    /// Sets the maximum length of a list.
    pub fn max_items(self, items: usize) -> Self {
        self.set("maxItems", items)
    }

    /// Requires the items of a list to be distinct.
    pub fn unique_items(self) -> Self {
        self.set("uniqueItems", true)
    }

    /// Sets any keyword of JSON Schema.
    pub fn set(mut self, keyword: impl Into<String>, value: impl Into<Value>) -> Self {
        self.edits.stricter = true;
        self.schema.insert(keyword.into(), value.into());
        self
    }

    /// Sets the type to `string`.
    pub fn string(self) -> Self {
        self.set("type", "string")
    }

    /// Sets the type to `integer`.
    pub fn integer(self) -> Self {
        self.set("type", "integer")
    }

    /// Sets the type to `number`.
    pub fn number(self) -> Self {
        self.set("type", "number")
    }

    /// Sets the type to `boolean`.
    pub fn boolean(self) -> Self {
        self.set("type", "boolean")
    }

    /// Sets the type to a list of such items.
    pub fn list(self, item: impl FnOnce(Self) -> Self) -> Self {
        self.set("type", "array").set("items", JsonObject::new()).items(item)
    }

    /// Sets the type to `object`, with the properties that [`add`](Self::add) creates.
    pub fn object(self) -> Self {
        self.set("type", "object").set("properties", JsonObject::new())
    }

    /// Edits an existing property.
    pub fn property(mut self, name: &str, edit: impl FnOnce(Self) -> Self) -> Self {
        match self.take(|schema| schema.get_mut("properties")?.get_mut(name).map(Value::take)) {
            Some(schema) => {
                let property = edit(self.part(name, schema));
                self.put_property(name, property)
            }
            None => {
                let fault = self.unknown(name);
                self.fault(fault);
                self
            }
        }
    }

    /// Adds a property. It is optional unless it is made [`required`](Self::required).
    pub fn add(mut self, name: &str, edit: impl FnOnce(Self) -> Self) -> Self {
        let there = self.take(|schema| schema.get("properties")?.get(name).map(|_| Value::Null)).is_some();
        if there {
            let pointer = self.pointer_to(name);
            self.fault(format!("already has `{pointer}`: use `property` to edit it"));
            return self;
        }
        self.edits.stricter = true;
        let property = edit(self.part(name, Value::Null));
        self.put_property(name, property)
    }

    /// Edits the items of a list.
    pub fn items(self, edit: impl FnOnce(Self) -> Self) -> Self {
        self.inner("items", "list", edit)
    }

    /// Edits the values of a map.
    pub fn entries(self, edit: impl FnOnce(Self) -> Self) -> Self {
        self.inner("additionalProperties", "map", edit)
    }

    /// Refuses properties that are not in the schema.
    ///
    /// By default they are ignored, since some hosts add properties.
    pub fn deny_unknown(mut self) -> Self {
        self.edits.stricter = true;
        self.take(|schema| {
            let parts = ["allOf", "anyOf", "oneOf", "$ref"];
            let combined = parts.iter().any(|keyword| schema.contains_key(*keyword));
            let keyword = if combined { "unevaluatedProperties" } else { "additionalProperties" };
            schema.insert(keyword.to_owned(), Value::Bool(false))
        });
        self
    }

    fn annotate(mut self, keyword: &str, value: impl Into<Value>) -> Self {
        self.schema.insert(keyword.to_owned(), value.into());
        self
    }

    fn inner(mut self, keyword: &str, kind: &str, edit: impl FnOnce(Self) -> Self) -> Self {
        match self.take(|schema| schema.get_mut(keyword).filter(|inner| !inner.is_array()).map(Value::take)) {
            Some(schema) => {
                let mut inner = edit(self.part("*", schema));
                if inner.required.is_some() {
                    inner.fault(format!(
                        "has no single `{}` to be required or optional: use `min_items`",
                        inner.pointer
                    ));
                }
                self.merge(inner.edits);
                let schema = Value::Object(inner.schema);
                self.take(|target| target.insert(keyword.to_owned(), schema));
            }
            None => {
                let part =
                    if self.pointer.is_empty() { "it".to_owned() } else { format!("`{}`", self.pointer) };
                self.fault(format!("has no `{keyword}` there: {part} is not a {kind}"));
            }
        }
        self
    }

    /// Creates a builder for a part of this one.
    fn part(&self, name: &str, schema: Value) -> Self {
        let schema = match schema {
            Value::Object(schema) => schema,
            // `true` and an absent schema have no constraints.
            _ => JsonObject::new(),
        };
        let (root, pointer) = (self.root.clone(), self.pointer_to(name));
        Self { schema, root, pointer, required: None, edits: SchemaEdits::default() }
    }

    fn put_property(mut self, name: &str, property: Self) -> Self {
        let (schema, required) = (Value::Object(property.schema), property.required);
        self.merge(property.edits);
        self.take(|target| {
            // An existing property keeps its position.
            match target.get_mut("properties") {
                Some(Value::Object(properties)) => drop(properties.insert(name.to_owned(), schema)),
                _ => {
                    let properties = JsonObject::from_iter([(name.to_owned(), schema)]);
                    target.insert("properties".to_owned(), Value::Object(properties));
                }
            }
            let mut names = match target.get_mut("required") {
                Some(Value::Array(names)) => mem::take(names),
                _ => Vec::new(),
            };
            if let Some(required) = required {
                names.retain(|other| other != name);
                names.extend(required.then(|| name.into()));
            }
            if names.is_empty() {
                target.shift_remove("required");
            } else {
                target.insert("required".to_owned(), Value::Array(names));
            }
            None
        });
        self
    }

    /// Calls a function with the object or list schema of this part, after copying a referenced schema into it.
    fn take(&mut self, reach: impl FnOnce(&mut JsonObject) -> Option<Value>) -> Option<Value> {
        let mut reach = Some(reach);
        let mut taken = None;
        target(&mut self.schema, &self.root, &mut |schema| {
            taken = reach.take().and_then(|reach| reach(schema));
        });
        taken
    }

    fn takes_null(&self) -> bool {
        let null = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "null");
        let listed = self.schema.get("type").and_then(Value::as_array);
        listed.is_some_and(|kinds| kinds.iter().any(|kind| kind == "null"))
            || self.schema.get("anyOf").and_then(Value::as_array).is_some_and(|any| any.iter().any(null))
    }

    fn unknown(&mut self, name: &str) -> String {
        let mut known = Vec::new();
        self.take(|schema| {
            let properties = schema.get("properties").and_then(Value::as_object);
            known.extend(properties.into_iter().flat_map(Map::keys).cloned());
            None
        });
        let pointer = self.pointer_to(name);
        match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("has no `{pointer}`: did you mean `{near}`?"),
            None if known.is_empty() => format!("has no `{pointer}`: use `add` for a new property"),
            None => {
                format!("has no `{pointer}`: there are `{}`; use `add` for a new one", known.join("`, `"))
            }
        }
    }

    fn pointer_to(&self, name: &str) -> String {
        format!("{}/{}", self.pointer, name.replace('~', "~0").replace('/', "~1"))
    }

    fn fault(&mut self, fault: String) {
        self.edits.faults.push(fault);
    }

    fn merge(&mut self, edits: SchemaEdits) {
        self.edits.faults.extend(edits.faults);
        self.edits.stricter |= edits.stricter;
        self.edits.defaults |= edits.defaults;
    }
}

/// Calls a function with the schema that applies: the target of a reference, copied in its place, or the inner schema of an
/// `Option`.
fn target(schema: &mut JsonObject, root: &Value, edit: &mut dyn FnMut(&mut JsonObject)) {
    for _ in 0..MAX_REFERENCES {
        let reference = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        let Some(Value::Object(referenced)) = reference.and_then(|pointer| root.pointer(pointer)) else {
            break;
        };
        let mut copy = referenced.clone();
        // A copy of the whole schema omits its definitions: they stay at the root.
        copy.shift_remove("$defs");
        schema.shift_remove("$ref");
        copy.append(schema);
        *schema = copy;
    }
    let null = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "null");
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf")
        && branches.len() == 2
        && branches.iter().any(null)
        && let Some(Value::Object(branch)) = branches.iter_mut().find(|branch| !null(branch))
    {
        return target(branch, root, edit);
    }
    edit(schema);
}
