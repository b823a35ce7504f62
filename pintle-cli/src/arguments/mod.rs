//! Arguments of tools, prompts and templates: what was typed, and what it means by the schema.

mod coerce;
mod flags;
mod parameter;
mod shape;
mod signature;
mod word;

use pintle::{
    schema::Fault,
    types::{JsonObject, schema::Tool},
};
use serde_json::Value;

use crate::args::near;
use coerce::coerce;
pub(crate) use flags::replace_flags;
pub(crate) use parameter::{Parameter, parameters};
use shape::{Shape, excerpt};
pub(crate) use signature::{help, prompt_signature, signature};
pub(crate) use word::{Word, read_words};

/// Builds the arguments of a tool from what was typed. An error is one line.
pub(crate) fn of_tool(tool: &Tool, words: Vec<Word>) -> Result<JsonObject, String> {
    build(&parameters(&tool.input_schema), words)
}

/// Builds arguments that are texts: those of prompts and of templates.
pub(crate) fn of_texts(words: Vec<Word>) -> Result<Vec<(String, String)>, String> {
    let arguments = build(&[], words)?;
    let texts = arguments.into_iter().map(|(name, value)| match value {
        Value::String(text) => (name, text),
        value => (name, value.to_string()),
    });
    Ok(texts.collect())
}

/// Describes a fault of arguments in the words that are typed: names instead of JSON pointers, and texts without quotation marks.
pub(crate) fn typed_fault(fault: &Fault) -> String {
    let mut fault = fault.clone();
    if let Some(name) = fault.pointer.strip_prefix('/').filter(|rest| !rest.contains(['/', '~'])) {
        fault.pointer = name.to_owned();
    }
    let plain = |text: &str| text.replace("`\"", "`").replace("\"`", "`");
    (fault.expected, fault.got) = (plain(&fault.expected), plain(&fault.got));
    fault.hint = fault.hint.map(|hint| plain(&hint));
    fault.to_string()
}

fn build(parameters: &[Parameter<'_>], words: Vec<Word>) -> Result<JsonObject, String> {
    let mut arguments = JsonObject::new();
    for word in words {
        match word {
            Word::Object(members) => {
                for (name, value) in members {
                    insert(&mut arguments, name, value)?;
                }
            }
            Word::Json { name, value } => insert(&mut arguments, name, value)?,
            Word::Text { name, text } => {
                let parameter = parameters.iter().find(|parameter| parameter.name == name);
                let Some(parameter) = parameter else {
                    // Of prompts, and of tools that accept any: they are texts.
                    if let Some(meant) = near(&name, parameters.iter().map(|parameter| parameter.name)) {
                        return Err(format!("no argument `{name}`; did you mean `{meant}`?"));
                    }
                    insert(&mut arguments, name, Value::String(text))?;
                    continue;
                };
                let value = coerce(&parameter.shape, &text).map_err(|expected| {
                    let hint = match (&parameter.shape, text.starts_with('[')) {
                        (Shape::List(_), true) => {
                            format!(": write `{name}:=[\"a\", \"b\"]`, or `{name}=` once for each item")
                        }
                        _ => String::new(),
                    };
                    format!("`{name}` must be {expected}, not `{}`{hint}", excerpt(&text))
                })?;
                match (arguments.get_mut(&name), value) {
                    // A list may be given item by item.
                    (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
                    (_, value) => insert(&mut arguments, name, value)?,
                }
            }
        }
    }
    Ok(arguments)
}

fn insert(arguments: &mut JsonObject, name: String, value: Value) -> Result<(), String> {
    if arguments.contains_key(&name) {
        return Err(format!("`{name}` is given twice"));
    }
    arguments.insert(name, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool() -> Tool {
        let schema = json!({
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "when": {"$ref": "#/$defs/When"},
                "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            },
            "required": ["city"],
            "$defs": {"When": {"type": "string", "enum": ["today", "tomorrow"]}},
        });
        Tool::new("weather", serde_json::from_value::<JsonObject>(schema).unwrap())
    }

    fn typed(words: &[&str]) -> Result<Value, String> {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        of_tool(&tool(), word::parse_words(&words, &mut std::io::empty())?).map(Value::Object)
    }

    #[test]
    fn texts_become_what_the_schema_wants() {
        assert_eq!(
            typed(&["city=7", "days=7", "tags=a", "tags=b", "when=today", "limit=3"]),
            Ok(json!({"city": "7", "days": 7, "tags": ["a", "b"], "when": "today", "limit": 3}))
        );
        assert_eq!(typed(&["city=a=b", "limit=null"]), Ok(json!({"city": "a=b", "limit": null})));
        assert_eq!(typed(&[r#"{"city":"x"}"#, "days:=[1]"]), Ok(json!({"city": "x", "days": [1]})));
        assert_eq!(typed(&["city=x", "extra=1"]), Ok(json!({"city": "x", "extra": "1"})));
    }

    #[test]
    fn a_mistake_is_explained() {
        for (words, message) in [
            (&["days=many"][..], "`days` must be an integer, not `many`"),
            (&["when=tody"], "`when` must be `today` or `tomorrow` (did you mean `today`?), not `tody`"),
            (&["ctiy=x"], "no argument `ctiy`; did you mean `city`?"),
            (&["city=x", "city=y"], "`city` is given twice"),
            (&["tags=[draft]"], "not `[draft]`: write `tags:=[\"a\", \"b\"]`, or `tags=` once for each item"),
            (&["limit=x"], "`limit` must be an integer or null, not `x`"),
            (
                &["bergen"],
                "`bergen` is not an argument: write `name=value`, `name:=JSON`, `name@file` or a JSON object",
            ),
            (&["days:=x"], "`days:=x` is not JSON"),
        ] {
            let error = typed(words).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
