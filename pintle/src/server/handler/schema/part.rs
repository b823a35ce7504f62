use std::{mem, sync::Arc};

use pintle_types::JsonObject;
use pintle_uri::nearest;
use serde_json::{Map, Value};

/// References that are followed in a row.
const MOST_TURNS: usize = 32;

/// A part of a tool's schema in your hands: what it is for, and which values it takes.
///
/// [`ToolRoute::input`](crate::server::ToolRoute::input) and [`output`](crate::server::ToolRoute::output) hand out the whole, which was
/// made of a type; [`property`](Self::property), [`items`](Self::items) and [`entries`](Self::entries) lead on into it.
/// What is said of a part is said of that place alone, also where several places share a type. A property that is not
/// there is an error when the tool is added, and so is a value that a keyword cannot have.
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
/// A tool that reads its arguments itself has no type to begin with; [`add`](Self::add) makes its properties:
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
    /// The schema that this is a part of, as it was at first.
    root: Arc<Value>,
    /// A JSON pointer into the values.
    place: String,
    required: Option<bool>,
    pub(crate) said: Said,
}

/// What came of the words of an author.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    /// To be read after "the input schema of `x`".
    pub(crate) faults: Vec<String>,
    /// More than the type asks for.
    pub(crate) asks_more: bool,
    /// A default that the type does not know.
    pub(crate) defaults: bool,
}

impl SchemaPart {
    pub(crate) fn whole(schema: JsonObject) -> Self {
        let root = Arc::new(Value::Object(schema.clone()));
        Self { schema, root, place: String::new(), required: None, said: Said::default() }
    }

    /// The schema, and what was said of it.
    pub(crate) fn finish(mut self) -> (JsonObject, Said) {
        if self.required.is_some() {
            self.fault(
                "is always there as a whole: say `required` and `optional` of its properties".to_owned(),
            );
        }
        (self.schema, self.said)
    }

    /// What a person sees instead of the name.
    pub fn title(self, text: impl Into<String>) -> Self {
        self.remark("title", text.into())
    }

    /// What it is for. The model reads it.
    pub fn description(self, text: impl Into<String>) -> Self {
        self.remark("description", text.into())
    }

    /// What a value looks like (`uri`, `date-time`). A remark: nothing is refused for it.
    pub fn format(self, format: impl Into<String>) -> Self {
        self.remark("format", format.into())
    }

    /// Better not used any more.
    pub fn deprecated(self) -> Self {
        self.remark("deprecated", true)
    }

    /// A value that it may have; say it again for another.
    pub fn example(mut self, value: impl Into<Value>) -> Self {
        let examples = self.schema.entry("examples").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(examples) = examples {
            examples.push(value.into());
        }
        self
    }

    /// What the handler gets if it is left out, which it may be.
    ///
    /// It is filled in before the handler sees the arguments, whether it takes them as a type or not (feature
    /// `validation`). In an object that was left out itself nothing is filled in.
    pub fn default(mut self, value: impl Into<Value>) -> Self {
        self.said.defaults = true;
        self.required = Some(false);
        self.remark("default", value)
    }

    /// It has to be there.
    pub fn required(mut self) -> Self {
        self.said.asks_more = true;
        self.required = Some(true);
        self
    }

    /// It may be left out. If the handler takes a type, the type has to allow that.
    pub fn optional(mut self) -> Self {
        self.required = Some(false);
        self
    }

    /// One of these values, and no other.
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

    /// Text that matches this regular expression. Look-around and back-references are refused.
    pub fn pattern(self, pattern: impl Into<String>) -> Self {
        self.set("pattern", pattern.into())
    }

    /// At least this.
    pub fn minimum(self, least: impl Into<Value>) -> Self {
        self.set("minimum", least)
    }

    /// At most this.
    pub fn maximum(self, most: impl Into<Value>) -> Self {
        self.set("maximum", most)
    }

    /// More than this.
    pub fn exclusive_minimum(self, bound: impl Into<Value>) -> Self {
        self.set("exclusiveMinimum", bound)
    }

    /// Less than this.
    pub fn exclusive_maximum(self, bound: impl Into<Value>) -> Self {
        self.set("exclusiveMaximum", bound)
    }

    /// A multiple of this.
    pub fn multiple_of(self, step: impl Into<Value>) -> Self {
        self.set("multipleOf", step)
    }

    /// Text of at least this many characters.
    pub fn min_length(self, characters: usize) -> Self {
        self.set("minLength", characters)
    }

    /// Text of at most this many characters.
    pub fn max_length(self, characters: usize) -> Self {
        self.set("maxLength", characters)
    }

    /// A list of at least this many items.
    pub fn min_items(self, items: usize) -> Self {
        self.set("minItems", items)
    }

    /// A list of at most this many items.
    pub fn max_items(self, items: usize) -> Self {
        self.set("maxItems", items)
    }

    /// A list in which nothing appears twice.
    pub fn unique_items(self) -> Self {
        self.set("uniqueItems", true)
    }

    /// Any other keyword of JSON Schema.
    pub fn set(mut self, keyword: impl Into<String>, value: impl Into<Value>) -> Self {
        self.said.asks_more = true;
        self.schema.insert(keyword.into(), value.into());
        self
    }

    /// Text.
    pub fn string(self) -> Self {
        self.set("type", "string")
    }

    /// An integer.
    pub fn integer(self) -> Self {
        self.set("type", "integer")
    }

    /// A number.
    pub fn number(self) -> Self {
        self.set("type", "number")
    }

    /// Yes or no.
    pub fn boolean(self) -> Self {
        self.set("type", "boolean")
    }

    /// A list of such items.
    pub fn list(self, item: impl FnOnce(Self) -> Self) -> Self {
        self.set("type", "array").set("items", JsonObject::new()).items(item)
    }

    /// An object, with the properties that are then [`add`](Self::add)ed.
    pub fn object(self) -> Self {
        self.set("type", "object").set("properties", JsonObject::new())
    }

    /// A property that is there.
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

    /// A new property. It may be left out unless it is said to be [`required`](Self::required).
    pub fn add(mut self, name: &str, edit: impl FnOnce(Self) -> Self) -> Self {
        let there = self.take(|schema| schema.get("properties")?.get(name).map(|_| Value::Null)).is_some();
        if there {
            let place = self.place_of(name);
            self.fault(format!("has `{place}` already: use `property` to say more of it"));
            return self;
        }
        self.said.asks_more = true;
        let property = edit(self.part(name, Value::Null));
        self.put_property(name, property)
    }

    /// The items of a list.
    pub fn items(self, edit: impl FnOnce(Self) -> Self) -> Self {
        self.inner("items", "list", edit)
    }

    /// The values of a map, whatever their names are.
    pub fn entries(self, edit: impl FnOnce(Self) -> Self) -> Self {
        self.inner("additionalProperties", "map", edit)
    }

    /// An object without any other properties than those that are named.
    ///
    /// Without it they are ignored, which is kinder: hosts add some of their own.
    pub fn deny_unknown(mut self) -> Self {
        self.said.asks_more = true;
        self.take(|schema| {
            let parts = ["allOf", "anyOf", "oneOf", "$ref"];
            let combined = parts.iter().any(|keyword| schema.contains_key(*keyword));
            let keyword = if combined { "unevaluatedProperties" } else { "additionalProperties" };
            schema.insert(keyword.to_owned(), Value::Bool(false))
        });
        self
    }

    fn remark(mut self, keyword: &str, value: impl Into<Value>) -> Self {
        self.schema.insert(keyword.to_owned(), value.into());
        self
    }

    fn inner(mut self, keyword: &str, kind: &str, edit: impl FnOnce(Self) -> Self) -> Self {
        match self.take(|schema| schema.get_mut(keyword).filter(|inner| !inner.is_array()).map(Value::take)) {
            Some(schema) => {
                let mut inner = edit(self.part("*", schema));
                if inner.required.is_some() {
                    inner.fault(format!(
                        "has no `{}` that is required or not: say how many there are",
                        inner.place
                    ));
                }
                self.merge(inner.said);
                let schema = Value::Object(inner.schema);
                self.take(|target| target.insert(keyword.to_owned(), schema));
            }
            None => {
                let place = if self.place.is_empty() { "it".to_owned() } else { format!("`{}`", self.place) };
                self.fault(format!("has no `{keyword}` there: {place} is no {kind}"));
            }
        }
        self
    }

    /// A part of this one.
    fn part(&self, name: &str, schema: Value) -> Self {
        let schema = match schema {
            Value::Object(schema) => schema,
            // `true` and nothing at all ask for nothing.
            _ => JsonObject::new(),
        };
        let (root, place) = (self.root.clone(), self.place_of(name));
        Self { schema, root, place, required: None, said: Said::default() }
    }

    fn put_property(mut self, name: &str, property: Self) -> Self {
        let (schema, required) = (Value::Object(property.schema), property.required);
        self.merge(property.said);
        self.take(|target| {
            // Each in its place: the order is the author's.
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
                names.retain(|known| known != name);
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

    /// Reaches for something in the object or list that is described here, and makes that this place's own.
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
        let place = self.place_of(name);
        match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("has no `{place}`: did you mean `{near}`?"),
            None if known.is_empty() => format!("has no `{place}`: use `add` for a new property"),
            None => format!("has no `{place}`: there are `{}`; use `add` for a new one", known.join("`, `")),
        }
    }

    fn place_of(&self, name: &str) -> String {
        format!("{}/{}", self.place, name.replace('~', "~0").replace('/', "~1"))
    }

    fn fault(&mut self, said: String) {
        self.said.faults.push(said);
    }

    fn merge(&mut self, said: Said) {
        self.said.faults.extend(said.faults);
        self.said.asks_more |= said.asks_more;
        self.said.defaults |= said.defaults;
    }
}

/// Hands out the schema that is meant at a place: what a reference leads to, copied there, or what an `Option` is of.
fn target(schema: &mut JsonObject, root: &Value, edit: &mut dyn FnMut(&mut JsonObject)) {
    for _ in 0..MOST_TURNS {
        let reference = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        let Some(Value::Object(meant)) = reference.and_then(|pointer| root.pointer(pointer)) else { break };
        let mut own = meant.clone();
        // The whole as a part of itself brings no definitions: they stay where they are.
        own.shift_remove("$defs");
        schema.shift_remove("$ref");
        own.append(schema);
        *schema = own;
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
