//! The columns, and what a client says of them: a line of JSON each.

use std::collections::BTreeMap;

use serde_json::Value;

/// The columns: the name in a client's lines, and what a cell of it has shown, for people.
pub(super) const CELLS: &[(&str, &str)] = &[
    ("open", "a connection in the requested era, or in the newest that both support"),
    ("list", "tools are listed"),
    ("call", "a tool is called and returns the correct structured result"),
    ("bad-arguments", "a call that does not match the tool's schema is refused"),
    ("progress", "all progress notifications of a call arrive in order"),
    ("answer", "the user is asked during a call, and accepts"),
    ("decline", "the user is asked during a call, and declines"),
    ("sample", "the client's model is asked during a call"),
    ("cancel", "a call is cancelled, and so is its handler"),
    ("read", "a resource is read"),
    ("update", "a subscribed resource changes, and the client is notified"),
    ("change", "the list of tools changes, and the client is notified and lists the new tool"),
    ("complete", "an argument of a prompt is completed"),
    ("pages", "a list of three pages is fetched page by page"),
];

/// The result that a client reports for one cell.
#[derive(Debug, PartialEq)]
pub(super) enum Reported {
    Works(String),
    Fails(String),
}

/// Reads what a client reported. What is no line about a cell, or the second about the same, is an error.
pub(super) fn read(text: &str) -> Result<BTreeMap<&'static str, Reported>, String> {
    let mut cells = BTreeMap::new();
    for line in text.lines() {
        let (cell, reported) = read_line(line).ok_or_else(|| format!("the client printed `{line}`"))?;
        if cells.insert(cell, reported).is_some() {
            return Err(format!("the client spoke twice of `{cell}`"));
        }
    }
    Ok(cells)
}

fn read_line(line: &str) -> Option<(&'static str, Reported)> {
    let value: Value = serde_json::from_str(line).ok()?;
    let name = value["cell"].as_str()?;
    let (cell, _) = CELLS.iter().find(|(cell, _)| *cell == name)?;
    let reported = match (value["ok"].as_str(), value["error"].as_str()) {
        (Some(shown), None) => Reported::Works(shown.to_owned()),
        (None, Some(error)) => Reported::Fails(error.to_owned()),
        _ => return None,
    };
    Some((cell, reported))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_about_one_cell() {
        let text = "{\"cell\":\"open\",\"ok\":\"2026-07-28\"}\n{\"cell\":\"list\",\"error\":\"no\"}\n";
        let cells = read(text).unwrap();
        assert_eq!(cells["open"], Reported::Works("2026-07-28".to_owned()));
        assert_eq!(cells["list"], Reported::Fails("no".to_owned()));
        assert_eq!(cells.len(), 2);
    }

    #[test]
    fn what_is_no_such_line_is_an_error() {
        let open = r#"{"cell":"open","ok":"x"}"#;
        let wrong = [
            "Warning: something",
            r#"{"cell":"unheard-of","ok":"x"}"#,
            r#"{"cell":"open"}"#,
            r#"{"cell":"open","ok":"x","error":"y"}"#,
            r#"{"cell":"open","ok":true}"#,
            &format!("{open}\n{open}"),
        ];
        for text in wrong {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
