//! Drafts of tools: out of the help of programs, and of files of go-go-mcp.

mod help;
mod import;

use std::collections::BTreeMap;

use pintle::types::JsonObject;
use serde_json::{Value, json};

pub use help::HelpDraft;
pub use import::ImportDraft;

/// The most characters of a description.
const MAX_DESCRIPTION: usize = 400;

/// A tool that is drafted out of something else, for somebody to correct.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct ToolDraft {
    title: Option<String>,
    description: Option<String>,
    words: Vec<String>,
    /// A line for a shell, in place of the words.
    line: Option<String>,
    cwd: Option<String>,
    env: BTreeMap<String, String>,
    arguments: BTreeMap<String, DraftArgument>,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct DraftArgument {
    kind: &'static str,
    is_required: bool,
    is_list: bool,
    description: String,
    values: Vec<String>,
    default: Option<Value>,
}

impl ToolDraft {
    /// Returns the draft as the entry of a tool.
    fn entry(&self) -> JsonObject {
        let description = self.description.as_deref();
        let arguments = self.arguments.iter().map(|(name, argument)| (name.clone(), argument.schema()));
        let members = [
            ("title", json!(self.title)),
            ("description", description.unwrap_or("Describe here what the tool does, and when.").into()),
            ("command", self.line.as_ref().map_or_else(|| json!(self.words), |line| json!(line))),
            ("shell", self.line.is_some().into()),
            ("cwd", json!(self.cwd)),
            ("env", json!(self.env)),
            ("arguments", Value::Object(arguments.collect())),
        ];
        let is_set = |value: &Value| !value.is_null() && *value != false && *value != json!({});
        let members = members.into_iter().filter(|(_, value)| is_set(value));
        members.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Returns the draft as a tool of a file in TOML.
    fn to_toml(&self, name: &str) -> String {
        let mut file = format!("[tools.{}]\n", key(name));
        let mut entry = self.entry();
        let arguments = entry.remove("arguments");
        entry.iter().for_each(|(name, member)| file += &format!("{} = {}\n", key(name), value(member)));
        if let Some(Value::Object(arguments)) = arguments {
            file += &format!("\n[tools.{}.arguments]\n", key(name));
            arguments
                .iter()
                .for_each(|(name, schema)| file += &format!("{} = {}\n", key(name), value(schema)));
        }
        file
    }
}

impl DraftArgument {
    fn schema(&self) -> Value {
        let mut schema = json!({ "type": self.kind });
        if !self.values.is_empty() {
            schema["enum"] = json!(self.values);
        }
        if self.is_list {
            schema = json!({ "type": "array", "items": schema });
        }
        if !self.description.is_empty() {
            schema["description"] = json!(self.description);
        }
        match &self.default {
            Some(default) => schema["default"] = default.clone(),
            None if !self.is_required => schema["optional"] = json!(true),
            None => {}
        }
        schema
    }
}

/// Returns a description without line breaks, cut.
fn shortened(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(MAX_DESCRIPTION).collect()
}

/// Writes a value as TOML does. What TOML has no word for is an empty text.
fn value(json: &Value) -> String {
    match json {
        Value::String(string) => text(string),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(value).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, member)| format!("{} = {}", key(name), value(member))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        Value::Null => text(""),
        plain => plain.to_string(),
    }
}

fn key(name: &str) -> String {
    let is_bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    if is_bare { name.to_owned() } else { text(name) }
}

/// Writes a text. JSON escapes as TOML does, but for one control character.
fn text(text: &str) -> String {
    json!(text).to_string().replace('\u{7f}', "\\u007F")
}
