//! Arguments as gates judge them. They have one reading, and are what the server behind gets.

use std::{
    cell::{OnceCell, RefCell},
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use pintle_types::{JsonObject, RawObject, RawValue};
use serde_json::{Value, value::to_raw_value};

use super::{argument_schema::ArgumentSchema, unique_json};

/// A type of JSON, as gates tell them apart. A number is one type, whether it is an integer or not.
#[expect(clippy::exhaustive_enums, reason = "JSON has no others")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ArgumentType {
    /// `null`, which is no value of any other type.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number.
    Number,
    /// A text.
    String,
    /// A list.
    Array,
    /// An object.
    Object,
}

impl ArgumentType {
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }

    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Null => "`null`",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "a list",
            Self::Object => "an object",
        }
    }
}

/// The values that a gate has read at a path of the arguments: one, or one of each element if the path leads through a list.
#[derive(Clone, Debug)]
pub struct Reading<'a> {
    /// `None` where there is no value. There is at least one, unless it cannot be judged.
    values: Vec<Option<&'a Value>>,
}

impl<'a> Reading<'a> {
    /// The reading of what cannot be judged.
    pub(crate) const UNJUDGEABLE: Self = Self { values: Vec::new() };

    /// Returns whether one of the values meets a condition, for what is to be denied. `None` is an argument that is not there. What cannot
    /// be judged meets every condition.
    pub fn any(&self, meets: impl FnMut(Option<&'a Value>) -> bool) -> bool {
        self.values.is_empty() || self.values.iter().copied().any(meets)
    }

    /// Returns whether all values meet a condition, for what is to be allowed. What cannot be judged meets none.
    pub fn all(&self, meets: impl FnMut(Option<&'a Value>) -> bool) -> bool {
        !self.values.is_empty() && self.values.iter().copied().all(meets)
    }
}

/// The changes of arguments on the way to the server behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ArgumentEdits {
    /// Arguments that callers cannot set.
    pub(crate) fixed: BTreeMap<String, Value>,
    /// Values of arguments that callers omit.
    pub(crate) defaults: BTreeMap<String, Value>,
}

impl ArgumentEdits {
    pub(crate) fn is_empty(&self) -> bool {
        self.fixed.is_empty() && self.defaults.is_empty()
    }

    /// Refuses arguments that callers cannot set.
    pub(crate) fn check<'a>(&self, mut names: impl Iterator<Item = &'a str>) -> Result<(), String> {
        let is_fixed = |name: &&str| self.fixed.keys().any(|fixed| is_same_name(fixed, name));
        match names.find(is_fixed) {
            Some(name) => Err(format!("there is no argument `{}`: leave it out", shown(name))),
            None => Ok(()),
        }
    }

    /// Returns the arguments that are added to those of these names.
    pub(crate) fn added(&self, has: impl Fn(&str) -> bool) -> impl Iterator<Item = (&String, &Value)> {
        let omitted = move |name: &String| !has(name) && !self.fixed.contains_key(name);
        self.fixed.iter().chain(self.defaults.iter().filter(move |(name, _)| omitted(name)))
    }

    fn apply(&self, arguments: &mut JsonObject) -> Result<(), String> {
        self.check(arguments.keys().map(String::as_str))?;
        let added: Vec<_> = self.added(|name| arguments.contains_key(name)).collect();
        arguments.extend(added.into_iter().map(|(name, value)| (name.clone(), value.clone())));
        Ok(())
    }
}

/// The arguments of a request as gates judge them: with the changes of the way, and the schema of the server behind. They are parsed when
/// a gate first reads one.
pub(crate) struct JudgedArguments<'a> {
    text: &'a str,
    /// The innermost first.
    edits: &'a [Arc<ArgumentEdits>],
    schema: ArgumentSchema<'a>,
    tree: OnceCell<Result<JsonObject, String>>,
    /// The paths whose default in the schema was read. It is sent too.
    filled: RefCell<Vec<Box<str>>>,
}

impl<'a> JudgedArguments<'a> {
    pub(crate) fn new(
        text: &'a str,
        edits: &'a [Arc<ArgumentEdits>],
        schema: Option<&'a JsonObject>,
    ) -> Self {
        let schema = ArgumentSchema::new(schema);
        Self { text, edits, schema, tree: OnceCell::new(), filled: RefCell::default() }
    }

    fn tree(&self) -> Result<&JsonObject, String> {
        let parse = || {
            let mut tree = unique_json::parse_object("arguments", self.text)?;
            self.edits.iter().rev().try_for_each(|edits| edits.apply(&mut tree))?;
            Ok(tree)
        };
        self.tree.get_or_init(parse).as_ref().map_err(Clone::clone)
    }

    /// Reads the values at a path of names with dots. They have one of these types, and the one that the schema states.
    ///
    /// # Errors
    ///
    /// The argument cannot be judged. The error says what to send in its place.
    pub(crate) fn read(&self, path: &str, types: &[ArgumentType]) -> Result<Reading<'_>, String> {
        let names: Vec<&str> = path.split('.').collect();
        let mut walk = ArgumentWalk { path, types, values: Vec::new(), has_default: false };
        walk.object(self.tree()?, self.schema, &names)?;
        let mut filled = self.filled.borrow_mut();
        if walk.has_default && !filled.iter().any(|known| **known == *path) {
            filled.push(path.into());
        }
        Ok(Reading { values: walk.values })
    }

    /// Returns the arguments with the defaults that were read.
    fn filled(&self) -> Result<JsonObject, String> {
        let mut filled = self.tree()?.clone();
        for path in self.filled.borrow().iter() {
            let names: Vec<&str> = path.split('.').collect();
            fill(&mut filled, self.schema, &names);
        }
        Ok(filled)
    }

    /// Returns the arguments that the caller would have to send for those that were judged; `None` if it did.
    pub(crate) fn sent(&self) -> Option<Box<RawValue>> {
        if self.filled.borrow().is_empty() {
            return None;
        }
        let (tree, filled) = (self.tree().ok()?, self.filled().ok()?);
        let mut sent: RawObject = serde_json::from_str(self.text).ok()?;
        let is_fixed = |name: &str| self.edits.iter().any(|edits| edits.fixed.contains_key(name));
        for (name, value) in filled.iter().filter(|(name, value)| tree.get(*name) != Some(value)) {
            if !is_fixed(name) {
                sent = sent.with(name, &to_raw_value(value).ok()?);
            }
        }
        to_raw_value(&sent).ok()
    }

    /// Returns the arguments as one text, however they are written.
    pub(crate) fn canonical(&self) -> Result<String, String> {
        let mut filled = Value::Object(self.filled()?);
        filled.sort_all_objects();
        Ok(filled.to_string())
    }

    /// Returns the arguments without those that callers cannot set, for a question to the user.
    pub(crate) fn shown(&self) -> Option<JsonObject> {
        let mut shown = self.filled().ok()?;
        shown.retain(|name, _| !self.edits.iter().any(|edits| edits.fixed.contains_key(name)));
        Some(shown)
    }
}

/// The object in the place of one that is not there.
static NO_MEMBERS: LazyLock<JsonObject> = LazyLock::new(JsonObject::default);

/// A search for the values at a path.
struct ArgumentWalk<'p, 'v> {
    path: &'p str,
    types: &'p [ArgumentType],
    values: Vec<Option<&'v Value>>,
    has_default: bool,
}

impl<'v> ArgumentWalk<'_, 'v> {
    fn fault(&self, expected: &str) -> String {
        format!("`{}` cannot be judged: send {expected}", self.path)
    }

    fn object(
        &mut self,
        object: &'v JsonObject,
        schema: ArgumentSchema<'v>,
        names: &[&str],
    ) -> Result<(), String> {
        let (name, rest) = member(object, schema, names).map_err(|other| {
            let reason = format!("it without `{}`, which may be taken for it", shown(&other));
            self.fault(&reason)
        })?;
        let property = schema.property(&name);
        let value = object.get(&name).or_else(|| {
            let default = property.default();
            self.has_default |= default.is_some();
            default
        });
        match value {
            Some(value) => self.value(value, property, rest),
            None => {
                self.values.push(None);
                if rest.is_empty() {
                    return Ok(());
                }
                // The server behind may take an object with its defaults in the place of none. Nobody knows, so it is not sent.
                let has_default = self.has_default;
                self.object(&NO_MEMBERS, property, rest)?;
                self.has_default = has_default;
                Ok(())
            }
        }
    }

    fn value(&mut self, value: &'v Value, schema: ArgumentSchema<'v>, names: &[&str]) -> Result<(), String> {
        schema.check(value).map_err(|expected| self.fault(&expected))?;
        let is_whole = names.is_empty();
        match value {
            Value::Array(items)
                if !is_whole || !self.types.contains(&ArgumentType::Array) && schema.states("array") =>
            {
                if items.is_empty() {
                    self.values.push(None);
                }
                items.iter().try_for_each(|item| self.value(item, schema.items(), names))
            }
            value if is_whole && self.types.contains(&ArgumentType::of(value)) => {
                self.values.push(Some(value));
                Ok(())
            }
            _ if is_whole => {
                let nouns: Vec<_> = self.types.iter().map(|known| known.noun()).collect();
                Err(self.fault(&nouns.join(" or ")))
            }
            Value::Object(object) => self.object(object, schema, names),
            Value::Null if schema.states("null") => {
                self.values.push(None);
                Ok(())
            }
            _ => Err(self.fault("an object there")),
        }
    }
}

/// Returns the name of the member that a path begins with, and the rest of the path: the member that the schema lists, else the first name.
///
/// # Errors
///
/// Another member could be taken for it, by a server that joins names with dots, or that does not tell upper from lower case.
fn member<'n>(
    object: &JsonObject,
    schema: ArgumentSchema<'_>,
    names: &'n [&'n str],
) -> Result<(String, &'n [&'n str]), String> {
    let Some(first) = names.first() else { return Ok((String::new(), names)) };
    let joined: Vec<String> = (1..=names.len()).map(|count| names[..count].join(".")).collect();
    let listed = || joined.iter().filter(|name| schema.lists(name));
    let chosen = listed().find(|name| object.contains_key(*name)).or_else(|| listed().next());
    let chosen = chosen.map_or(*first, String::as_str);
    let is_other = |member: &&String| {
        *member != chosen
            && begins_as(member, first)
            && joined
                .iter()
                .any(|name| *member == name || is_same_name(name, member) && !schema.lists(member))
    };
    if let Some(other) = object.keys().find(is_other) {
        return Err(other.clone());
    }
    let count = joined.iter().position(|name| name == chosen).map_or(1, |at| at + 1);
    Ok((chosen.to_owned(), names.get(count..).unwrap_or_default()))
}

/// Adds the default of an omitted argument.
fn fill(object: &mut JsonObject, schema: ArgumentSchema<'_>, names: &[&str]) {
    let Ok((name, rest)) = member(object, schema, names) else { return };
    let property = schema.property(&name);
    if let Some(default) = property.default() {
        object.entry(name.clone()).or_insert_with(|| default.clone());
    }
    if let Some(value) = object.get_mut(&name) {
        fill_value(value, property, rest);
    }
}

fn fill_value(value: &mut Value, schema: ArgumentSchema<'_>, names: &[&str]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| fill_value(item, schema.items(), names)),
        Value::Object(object) if !names.is_empty() => fill(object, schema, names),
        _ => {}
    }
}

/// Returns the characters of a name without their case. Some servers do not tell it apart.
fn folded(name: &str) -> impl Iterator<Item = char> {
    name.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

fn is_same_name(one: &str, other: &str) -> bool {
    folded(one).eq(folded(other))
}

fn begins_as(name: &str, first: &str) -> bool {
    let mut name = folded(name);
    folded(first).all(|c| name.next() == Some(c))
}

fn shown(name: &str) -> String {
    name.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ANY: [ArgumentType; 6] = [
        ArgumentType::Null,
        ArgumentType::Boolean,
        ArgumentType::Number,
        ArgumentType::String,
        ArgumentType::Array,
        ArgumentType::Object,
    ];

    fn properties(properties: &Value) -> Value {
        json!({"type": "object", "properties": properties})
    }

    #[test]
    fn all_defaults_that_were_read_are_sent_and_no_others() {
        let schema =
            properties(&json!({"a": {"default": 1}, "b": {"default": 2}, "c": {"default": 3}, "d": {}}));
        let arguments = JudgedArguments::new("{\"x\":1}", &[], schema.as_object());
        let sent = || arguments.sent().map(|sent| sent.get().to_owned());
        for path in ["x", "d", "a", "b", "a"] {
            assert!(arguments.read(path, &ANY).is_ok());
        }
        assert_eq!(sent().unwrap(), r#"{"x":1,"a":1,"b":2}"#);
        assert_eq!(arguments.filled.borrow().len(), 2);
        let unread = JudgedArguments::new("{\"x\":1}", &[], schema.as_object());
        assert!(unread.read("x", &ANY).is_ok() && unread.sent().is_none());
    }

    #[test]
    fn an_argument_whose_name_is_longer_is_another_one() {
        let arguments = JudgedArguments::new(r#"{"path":"a","pathname":"b","p":"c"}"#, &[], None);
        for path in ["path", "path.of"] {
            assert_eq!(arguments.read(path, &ANY).is_ok(), path == "path");
        }
        let read = arguments.read("path", &ANY).unwrap();
        assert!(read.all(|value| value == Some(&json!("a"))));
        for decoy in ["Path", "PATH"] {
            let text = format!(r#"{{"path":"a","{decoy}":"b"}}"#);
            assert!(JudgedArguments::new(&text, &[], None).read("path", &ANY).is_err(), "{decoy}");
            // The server behind knows both.
            let both = properties(&json!({"path": {}, decoy: {}}));
            assert!(JudgedArguments::new(&text, &[], both.as_object()).read("path", &ANY).is_ok());
        }
    }

    #[test]
    fn null_in_the_place_of_an_object_is_judged_if_the_schema_has_it() {
        let read = |kind: Value| {
            let schema = properties(&json!({ "a": kind }));
            let arguments = JudgedArguments::new(r#"{"a":null}"#, &[], schema.as_object());
            arguments.read("a.b", &ANY).map(|read| read.all(|value| value.is_none()))
        };
        assert_eq!(read(json!({"type": ["object", "null"]})), Ok(true));
        for kind in [json!({"type": "object"}), json!({})] {
            assert!(read(kind).unwrap_err().contains("send an object"));
        }
    }
}
