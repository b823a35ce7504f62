use pintle::{
    schema::Schema,
    server::Form,
    types::{
        JsonObject,
        schema::{PrimitiveSchema, StringFormat},
    },
};
use serde_json::{Number, Value};

use crate::args::near;

/// How many choices a message names.
const LISTED: usize = 20;

/// A field of a form.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) required: bool,
    pub(super) default: Option<Value>,
    pub(super) kind: FieldKind,
    schema: PrimitiveSchema,
}

/// The values that a field accepts.
#[derive(Clone, Debug)]
pub(super) enum FieldKind {
    Text {
        min: Option<i64>,
        max: Option<i64>,
        format: Option<StringFormat>,
        pattern: Option<Schema>,
    },
    Number {
        is_integer: bool,
        min: Option<Number>,
        max: Option<Number>,
    },
    Boolean,
    Choice(Vec<Choice>),
    Choices {
        choices: Vec<Choice>,
        min: Option<i64>,
        max: Option<i64>,
    },
    /// A schema that forms do not have: JSON, or else a text.
    Other(Option<Schema>),
}

/// A value to choose.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    pub(super) value: String,
    pub(super) title: Option<String>,
}

impl Field {
    /// Reads the schema of a field, in the spelling of any revision.
    pub(super) fn new(name: &str, schema: &PrimitiveSchema, required: bool) -> Self {
        let (title, description) = texts(schema);
        let (kind, default) = kind(schema);
        let (name, schema) = (name.to_owned(), schema.clone());
        Self { name, title, description, required, default, kind, schema }
    }

    /// Reads a text as a value of the field. The error is for the one who typed it.
    pub(super) fn read(&self, text: &str) -> Result<Value, String> {
        let value = match &self.kind {
            FieldKind::Text { .. } => Some(Value::String(text.to_owned())),
            FieldKind::Number { is_integer: true, .. } => integer(text),
            FieldKind::Number { .. } => text.trim().parse::<Number>().ok().map(Value::Number),
            FieldKind::Boolean => match text.trim().to_lowercase().as_str() {
                "true" | "yes" | "y" | "on" => Some(Value::Bool(true)),
                "false" | "no" | "n" | "off" => Some(Value::Bool(false)),
                _ => None,
            },
            FieldKind::Choice(choices) => choose(choices, text).map(Value::String),
            FieldKind::Choices { choices, .. } => choose_several(choices, text),
            FieldKind::Other(_) => {
                Some(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())))
            }
        };
        let value = value.ok_or_else(|| self.wrong(text))?;
        self.check(&value).map(|()| value)
    }

    /// Reads what was typed in the form, where a choice may be given by its number.
    pub(super) fn read_typed(&self, text: &str) -> Result<Value, String> {
        let numbered = |choices: &[Choice], word: &str| {
            let is_value = choose(choices, word).is_some();
            let number = word.trim().parse::<usize>().ok().filter(|_| !is_value);
            let choice = number.and_then(|number| choices.get(number.checked_sub(1)?));
            choice.map_or_else(|| word.to_owned(), |choice| choice.value.clone())
        };
        match &self.kind {
            FieldKind::Choice(choices) => self.read(&numbered(choices, text)),
            FieldKind::Choices { choices, .. } if !text.trim_start().starts_with('[') => {
                let words = text.split(',').filter(|word| !word.trim().is_empty());
                let values = words.map(|word| {
                    let word = numbered(choices, word);
                    choose(choices, &word).map(Value::String).ok_or_else(|| self.wrong(&word))
                });
                let value = unique(values.collect::<Result<Vec<_>, _>>()?);
                self.check(&value).map(|()| value)
            }
            _ => self.read(text),
        }
    }

    /// Checks a value, as the server will. The error is for the one who gave it.
    pub(super) fn check(&self, value: &Value) -> Result<(), String> {
        let fits_schema = match &self.kind {
            FieldKind::Text { pattern: Some(schema), .. } | FieldKind::Other(Some(schema)) => {
                schema.check(value).is_ok()
            }
            _ => true,
        };
        match fits_schema && Form::accepts(&self.schema, value) {
            true => Ok(()),
            false => Err(self.wrong(&bare(value))),
        }
    }

    fn wrong(&self, text: &str) -> String {
        let choices = match &self.kind {
            FieldKind::Choice(choices) | FieldKind::Choices { choices, .. } => choices.as_slice(),
            _ => &[],
        };
        let is_choice = choices.iter().any(|choice| choice.value == text);
        let meant = near(text, choices.iter().map(|choice| choice.value.as_str())).filter(|_| !is_choice);
        let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
        format!("`{}` must be {}, not `{}`{meant}", self.name, self.expected(), excerpt(text))
    }

    /// Returns what the field accepts, with its article: `an integer from 1 to 14`.
    pub(super) fn expected(&self) -> String {
        match &self.kind {
            FieldKind::Text { min, max, format, pattern } => {
                let format = format.as_ref().and_then(Form::describe_format);
                let mut text = format.unwrap_or("a text").to_owned();
                text.push_str(&range(min.as_ref(), max.as_ref(), " with", " characters"));
                if pattern.is_some() {
                    text.push_str(" that matches the pattern");
                }
                text
            }
            FieldKind::Number { is_integer, min, max } => {
                let kind = if *is_integer { "an integer" } else { "a number" };
                format!("{kind}{}", range(min.as_ref(), max.as_ref(), "", ""))
            }
            FieldKind::Boolean => "`yes` or `no`".to_owned(),
            FieldKind::Choice(choices) => format!("one of {}", listed(choices)),
            FieldKind::Choices { choices, min, max } => {
                format!("some of {}{}", listed(choices), range(min.as_ref(), max.as_ref(), ",", " of them"))
            }
            FieldKind::Other(_) => "JSON that the form describes".to_owned(),
        }
    }

    /// Formats an argument that answers the field, for what to type: `nights=1`.
    pub(super) fn example(&self) -> String {
        let name = &self.name;
        match (&self.default, &self.kind) {
            (Some(Value::String(default)), _) => format!("{name}={default}"),
            (Some(default), _) => format!("{name}:={default}"),
            (None, FieldKind::Choice(choices) | FieldKind::Choices { choices, .. }) => {
                format!("{name}={}", choices.first().map_or("…", |choice| &choice.value))
            }
            (None, FieldKind::Boolean) => format!("{name}=yes"),
            (None, FieldKind::Number { min, .. }) => {
                format!("{name}={}", min.as_ref().map_or_else(|| "1".to_owned(), ToString::to_string))
            }
            (None, _) => format!("{name}=…"),
        }
    }
}

/// Formats a value as it is typed: a text without quotes.
pub(super) fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn texts(schema: &PrimitiveSchema) -> (Option<String>, Option<String>) {
    use PrimitiveSchema::{
        Boolean, Enum, Integer, MultiEnum, Number, String, TitledEnum, TitledMultiEnum, Unknown,
    };
    let (title, description) = match schema {
        String(field) => (&field.title, &field.description),
        Number(field) | Integer(field) => (&field.title, &field.description),
        Boolean(field) => (&field.title, &field.description),
        Enum(field) => (&field.title, &field.description),
        TitledEnum(field) => (&field.title, &field.description),
        MultiEnum(field) => (&field.title, &field.description),
        TitledMultiEnum(field) => (&field.title, &field.description),
        Unknown(object) => {
            let text = |name| object.get(name).and_then(Value::as_str).map(str::to_owned);
            return (text("title"), text("description"));
        }
        _ => return (None, None),
    };
    (title.clone(), description.clone())
}

/// Returns the kind of a field and its default.
fn kind(schema: &PrimitiveSchema) -> (FieldKind, Option<Value>) {
    match schema {
        PrimitiveSchema::String(field) => {
            let pattern = field.extra.get("pattern").and_then(|pattern| {
                let only = JsonObject::from_iter([("pattern".to_owned(), pattern.clone())]);
                Schema::compile(&Value::Object(only)).ok()
            });
            let (min, max) = (field.min_length, field.max_length);
            let kind = FieldKind::Text { min, max, format: field.format.clone(), pattern };
            (kind, field.default.clone().map(Value::String))
        }
        PrimitiveSchema::Number(field) | PrimitiveSchema::Integer(field) => {
            let is_integer = matches!(schema, PrimitiveSchema::Integer(_));
            let (min, max) = (field.minimum.clone(), field.maximum.clone());
            (FieldKind::Number { is_integer, min, max }, field.default.clone().map(Value::Number))
        }
        PrimitiveSchema::Boolean(field) => (FieldKind::Boolean, field.default.map(Value::Bool)),
        PrimitiveSchema::Enum(field) => {
            let titles = field.enum_names.as_deref().unwrap_or_default();
            let choice = |(at, value): (usize, &String)| Choice::new(value, titles.get(at));
            let choices = field.values.iter().enumerate().map(choice).collect();
            (FieldKind::Choice(choices), field.default.clone().map(Value::String))
        }
        PrimitiveSchema::TitledEnum(field) => {
            let choices = field.one_of.iter().map(|option| Choice::new(&option.value, Some(&option.title)));
            (FieldKind::Choice(choices.collect()), field.default.clone().map(Value::String))
        }
        PrimitiveSchema::MultiEnum(field) => {
            let choices = field.items.values.iter().map(|value| Choice::new(value, None)).collect();
            let kind = FieldKind::Choices { choices, min: field.min_items, max: field.max_items };
            (kind, field.default.clone().map(Value::from))
        }
        PrimitiveSchema::TitledMultiEnum(field) => {
            let options = field.items.any_of.iter();
            let choices = options.map(|option| Choice::new(&option.value, Some(&option.title))).collect();
            let kind = FieldKind::Choices { choices, min: field.min_items, max: field.max_items };
            (kind, field.default.clone().map(Value::from))
        }
        PrimitiveSchema::Unknown(object) => {
            let schema = Schema::compile(&Value::Object(object.clone())).ok();
            (FieldKind::Other(schema), object.get("default").cloned())
        }
        _ => (FieldKind::Other(None), None),
    }
}

impl Choice {
    fn new(value: &str, title: Option<&String>) -> Self {
        Self { value: value.to_owned(), title: title.filter(|title| *title != value).cloned() }
    }
}

fn integer(text: &str) -> Option<Value> {
    let text = text.trim();
    let signed = text.parse::<i64>().ok().map(Value::from);
    signed.or_else(|| text.parse::<u64>().ok().map(Value::from))
}

/// Finds a choice by its value, or else by its title.
fn choose(choices: &[Choice], text: &str) -> Option<String> {
    let text = text.trim();
    let by_value = choices.iter().find(|choice| choice.value == text);
    let by_title = || {
        choices.iter().find(|choice| {
            choice.title.as_deref().is_some_and(|title| title.to_lowercase() == text.to_lowercase())
        })
    };
    by_value.or_else(by_title).map(|choice| choice.value.clone())
}

/// Reads choices: a JSON array, one of them, or several with commas between them.
fn choose_several(choices: &[Choice], text: &str) -> Option<Value> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text).ok().filter(Value::is_array);
    }
    // A value may have a comma.
    if let Some(one) = choose(choices, text) {
        return Some(Value::from(vec![one]));
    }
    let words = text.split(',').filter(|word| !word.trim().is_empty());
    words.map(|word| choose(choices, word).map(Value::String)).collect::<Option<Vec<_>>>().map(unique)
}

fn unique(values: Vec<Value>) -> Value {
    let mut kept: Vec<Value> = Vec::new();
    for value in values {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    Value::Array(kept)
}

fn listed(choices: &[Choice]) -> String {
    let mut shown: Vec<_> =
        choices.iter().take(LISTED).map(|choice| format!("`{}`", excerpt(&choice.value))).collect();
    if let more @ 1.. = choices.len().saturating_sub(LISTED) {
        shown.push(format!("{more} others"));
    }
    shown.join(", ")
}

fn range<T: ToString>(min: Option<&T>, max: Option<&T>, before: &str, after: &str) -> String {
    match (min.map(T::to_string), max.map(T::to_string)) {
        (Some(min), Some(max)) => format!("{before} from {min} to {max}{after}").replace("with from", "with"),
        (Some(min), None) => format!("{before} at least {min}{after}"),
        (None, Some(max)) => format!("{before} at most {max}{after}"),
        (None, None) => String::new(),
    }
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(schema: Value) -> Field {
        Field::new("x", &serde_json::from_value(schema).unwrap(), true)
    }

    #[test]
    fn every_kind_and_every_spelling_is_read() {
        let titled = json!([{"const": "a", "title": "Ada"}, {"const": "b", "title": "Bob"}]);
        for (schema, text, value) in [
            (json!({"type": "string"}), "7", json!("7")),
            (json!({"type": "string", "format": "email"}), "a@b.c", json!("a@b.c")),
            (json!({"type": "string", "pattern": "^[a-z]+$"}), "abc", json!("abc")),
            (json!({"type": "number", "minimum": 0.5}), "1.5", json!(1.5)),
            (json!({"type": "integer", "maximum": 14}), " 14", json!(14)),
            (json!({"type": "boolean"}), "Yes", json!(true)),
            (json!({"type": "boolean"}), "n", json!(false)),
            (json!({"type": "string", "enum": ["a", "b"]}), "b", json!("b")),
            (json!({"type": "string", "enum": ["a", "b"], "enumNames": ["Ada", "Bob"]}), "bob", json!("b")),
            (json!({"type": "string", "oneOf": titled}), "Ada", json!("a")),
            (
                json!({"type": "array", "items": {"type": "string", "enum": ["a", "b", "c,d"]}}),
                "b, a,b",
                json!(["b", "a"]),
            ),
            (
                json!({"type": "array", "items": {"type": "string", "enum": ["a", "b", "c,d"]}}),
                "c,d",
                json!(["c,d"]),
            ),
            (json!({"type": "array", "items": {"anyOf": titled}}), r#"["a"]"#, json!(["a"])),
            (json!({"type": "array", "items": {"anyOf": titled}}), "bob", json!(["b"])),
            (json!({"type": "array", "items": {"type": "integer"}}), "[1]", json!([1])),
        ] {
            assert_eq!(field(schema.clone()).read(text), Ok(value), "{schema}");
        }
        // By number in a form, unless the number is a value.
        assert_eq!(field(json!({"type": "string", "oneOf": titled})).read_typed("2"), Ok(json!("b")));
        assert_eq!(field(json!({"type": "string", "enum": ["2", "1"]})).read_typed("2"), Ok(json!("2")));
        let several = json!({"type": "array", "items": {"anyOf": titled}, "minItems": 1});
        assert_eq!(field(several).read_typed("2,Ada"), Ok(json!(["b", "a"])));
    }

    #[test]
    fn what_does_not_fit_is_explained() {
        let several = json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "maxItems": 1});
        for (schema, text, message) in [
            (
                json!({"type": "integer", "minimum": 1, "maximum": 14}),
                "40",
                "`x` must be an integer from 1 to 14, not `40`",
            ),
            (json!({"type": "integer"}), "1.5", "`x` must be an integer, not `1.5`"),
            (json!({"type": "number", "maximum": 1}), "2", "`x` must be a number at most 1, not `2`"),
            (json!({"type": "boolean"}), "maybe", "`x` must be `yes` or `no`, not `maybe`"),
            (
                json!({"type": "string", "minLength": 2}),
                "a",
                "`x` must be a text with at least 2 characters, not `a`",
            ),
            (
                json!({"type": "string", "minLength": 2, "maxLength": 3}),
                "abcd",
                "`x` must be a text with 2 to 3 characters, not `abcd`",
            ),
            (
                json!({"type": "string", "format": "date"}),
                "1.2.",
                "`x` must be a date (`YYYY-MM-DD`), not `1.2.`",
            ),
            (
                json!({"type": "string", "pattern": "^a$"}),
                "b",
                "`x` must be a text that matches the pattern, not `b`",
            ),
            (
                json!({"type": "string", "enum": ["bergen"]}),
                "begren",
                "`x` must be one of `bergen`, not `begren`; did you mean `bergen`?",
            ),
            (several.clone(), "a,b", r#"`x` must be some of `a`, `b`, from 1 to 1 of them, not `["a","b"]`"#),
            (several, "c", "`x` must be some of `a`, `b`, from 1 to 1 of them, not `c`"),
        ] {
            let error = field(schema).read(text).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
        // Values from a file have the types of the form.
        assert!(field(json!({"type": "integer"})).check(&json!("7")).is_err());
        assert!(field(json!({"type": "integer"})).check(&json!(7.0)).is_ok());
        assert!(field(json!({"type": "array", "items": {"type": "integer"}})).check(&json!(["a"])).is_err());
    }
}
