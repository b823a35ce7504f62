use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstObject, CstRootNode},
};
use serde_json::Value;

use super::EditFault;

const INVALID: EditFault = EditFault::Invalid("the file is not a JSON object");
const NOT_AN_OBJECT: EditFault = EditFault::Invalid("the servers of the file are not an object");

/// Adds an entry at the end of the servers.
pub(super) fn add(
    text: &str,
    member: &str,
    name: &str,
    entry: &Value,
    replace: bool,
) -> Result<String, EditFault> {
    let root = parse(text)?;
    let object = match root.value() {
        None => root.object_value_or_set(),
        Some(value) => value.as_object().ok_or(INVALID)?,
    };
    let servers = match object.get(member) {
        None => object.object_value_or_set(member),
        Some(servers) => servers.object_value().ok_or(NOT_AN_OBJECT)?,
    };
    match named(&servers, name).as_slice() {
        [] => drop(servers.append(name, input(entry))),
        [_, ..] if !replace => return Err(EditFault::Exists),
        [entry_of_before] => entry_of_before.set_value(input(entry)),
        _ => return Err(EditFault::Invalid("the file names this server twice: remove one by hand")),
    }
    let mut text = root.to_string();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Removes an entry, and all others of its name.
pub(super) fn remove(text: &str, member: &str, name: &str) -> Result<String, EditFault> {
    let root = parse(text)?;
    let object = root.object_value().ok_or(EditFault::Absent)?;
    let servers = object.get(member).ok_or(EditFault::Absent)?.object_value().ok_or(NOT_AN_OBJECT)?;
    let entries = named(&servers, name);
    if entries.is_empty() {
        return Err(EditFault::Absent);
    }
    entries.into_iter().for_each(jsonc_parser::cst::CstObjectProp::remove);
    Ok(root.to_string())
}

fn parse(text: &str) -> Result<CstRootNode, EditFault> {
    // The text was parsed before, with its errors.
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|_| INVALID)
}

fn named(servers: &CstObject, name: &str) -> Vec<jsonc_parser::cst::CstObjectProp> {
    let has_name = |property: &jsonc_parser::cst::CstObjectProp| {
        property.decoded_name().is_some_and(|found| found == name)
    };
    servers.properties().into_iter().filter(has_name).collect()
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn added(text: &str) -> String {
        let entry = json!({"command": "uvx", "args": ["a\"b", "c"]});
        add(text, "mcpServers", "git", &entry, false).unwrap()
    }

    #[test]
    fn comments_order_and_layout_are_kept() {
        // Trailing commas, as the file has them.
        let text = "// top\n{\n    \"z\": 1, // one\n    \"mcpServers\": {\n        /* mine */\n        \"b\": {\"url\": \"x\"}, // last\n    },\n    \"a\": [ 1,2 ]\n}\n";
        let expected = "// top\n{\n    \"z\": 1, // one\n    \"mcpServers\": {\n        /* mine */\n        \"b\": {\"url\": \"x\"}, // last\n        \"git\": {\n            \"command\": \"uvx\",\n            \"args\": [\"a\\\"b\", \"c\"],\n        },\n    },\n    \"a\": [ 1,2 ]\n}\n";
        assert_eq!(added(text), expected);
        assert_eq!(remove(expected, "mcpServers", "git").unwrap(), text);
    }

    #[test]
    fn what_is_missing_is_made() {
        let whole = "{\n  \"mcpServers\": {\n    \"git\": {\n      \"command\": \"uvx\",\n      \"args\": [\"a\\\"b\", \"c\"]\n    }\n  }\n}\n";
        for text in ["", "{}", "{\n}\n", "{\n  \"mcpServers\": {}\n}"] {
            assert_eq!(added(text), whole, "{text}");
        }
        let crlf = added("{\r\n  \"a\": 1\r\n}\r\n");
        assert_eq!(crlf.matches('\n').count(), crlf.matches("\r\n").count(), "{crlf:?}");
        assert!(added("// note\n").starts_with("// note\n"));
    }

    #[test]
    fn a_name_is_added_once() {
        let text = r#"{"mcpServers": {"git": {"command": "x"}}}"#;
        let entry = json!({"url": "u"});
        assert_eq!(add(text, "mcpServers", "git", &entry, false), Err(EditFault::Exists));
        let replaced = add(text, "mcpServers", "git", &entry, true).unwrap();
        let replaced: Value = serde_json::from_str(&replaced).unwrap();
        assert_eq!(replaced, json!({"mcpServers": {"git": {"url": "u"}}}));
        assert_eq!(remove(text, "mcpServers", "other"), Err(EditFault::Absent));
        assert_eq!(remove("{}", "mcpServers", "git"), Err(EditFault::Absent));
        assert_eq!(add(r#"{"mcpServers": []}"#, "mcpServers", "git", &entry, false), Err(NOT_AN_OBJECT));
        assert_eq!(add("[]", "mcpServers", "git", &entry, false), Err(INVALID));
    }
}
