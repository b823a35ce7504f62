use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, value};

use super::EditFault;

const SERVERS: &str = "mcp_servers";
const NOT_A_TABLE: EditFault = EditFault::Invalid("`mcp_servers` is not a table");

/// Adds an entry.
pub(super) fn add(text: &str, name: &str, entry: &Value, replace: bool) -> Result<String, EditFault> {
    let mut document = parse(text)?;
    let servers = document.entry(SERVERS).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let servers = servers.as_table_like_mut().ok_or(NOT_A_TABLE)?;
    if servers.contains_key(name) && !replace {
        return Err(EditFault::Exists);
    }
    let mut table = Table::new();
    for (member, found) in entry.as_object().into_iter().flatten() {
        table.insert(member, value(inline(found)));
    }
    servers.insert(name, Item::Table(table));
    Ok(document.to_string())
}

/// Removes an entry.
pub(super) fn remove(text: &str, name: &str) -> Result<String, EditFault> {
    let mut document = parse(text)?;
    let servers = document.get_mut(SERVERS).ok_or(EditFault::Absent)?;
    let servers: &mut dyn TableLike = servers.as_table_like_mut().ok_or(NOT_A_TABLE)?;
    servers.remove(name).ok_or(EditFault::Absent)?;
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, EditFault> {
    // The text was parsed before, with its errors.
    text.parse().map_err(|_| EditFault::Invalid("the file is not TOML"))
}

fn inline(found: &Value) -> toml_edit::Value {
    match found {
        Value::Null => "".into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(inline).collect::<Array>().into(),
        Value::Object(members) => {
            members.iter().map(|(name, found)| (name.as_str(), inline(found))).collect::<InlineTable>().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_order_are_kept() {
        let text = "# top\nmodel = \"x\" # mine\n\n[mcp_servers.a]\ncommand = 'a'\n\n[tui]\nz = 1\n";
        let entry = json!({"command": "uvx", "args": ["git", "it's"], "env": {"A": "1"}});
        let added = add(text, "git", &entry, false).unwrap();
        assert!(
            added.starts_with("# top\nmodel = \"x\" # mine\n\n[mcp_servers.a]\ncommand = 'a'\n"),
            "{added}"
        );
        assert!(
            added.contains(
                "[mcp_servers.git]\ncommand = \"uvx\"\nargs = [\"git\", \"it's\"]\nenv = { A = \"1\" }\n"
            ),
            "{added}"
        );
        assert_eq!(add(&added, "git", &entry, false), Err(EditFault::Exists));
        assert_eq!(add(&added, "git", &entry, true).unwrap(), added);
        assert_eq!(remove(&added, "git").unwrap().replace("\n\n", "\n"), text.replace("\n\n", "\n"));
        assert_eq!(remove(text, "git"), Err(EditFault::Absent));
        assert_eq!(remove("", "git"), Err(EditFault::Absent));
    }

    #[test]
    fn what_is_missing_is_made() {
        let entry = json!({"url": "https://e.com"});
        assert_eq!(
            add("", "a.b", &entry, false).unwrap(),
            "[mcp_servers.\"a.b\"]\nurl = \"https://e.com\"\n"
        );
        let inline = add("mcp_servers = { a = { command = 'x' } }\n", "git", &entry, false).unwrap();
        assert_eq!(inline, "mcp_servers = { a = { command = 'x' } , git = { url = \"https://e.com\" } }\n");
        assert_eq!(add("mcp_servers = 1\n", "git", &entry, false), Err(NOT_A_TABLE));
    }
}
