use std::fmt::Write;

use serde_json::Value;

/// How wide a line may get before an object is broken into several.
const WIDTH: usize = 100;

/// Prints JSON for people: what fits on a line stays on it, and members are in the order of their names.
///
/// Which order a map has is for some crate's feature to say; a snapshot must not depend on that.
pub(crate) fn print(value: &Value, indent: usize, out: &mut String) {
    let line = flat(value);
    let begun = out.len() - out.rfind('\n').map_or(0, |at| at + 1);
    if begun + line.chars().count() <= WIDTH {
        return out.push_str(&line);
    }
    let inner = indent + 2;
    match value {
        Value::Object(members) if !members.is_empty() => {
            out.push('{');
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            for (at, (name, member)) in members.into_iter().enumerate() {
                begin(at, inner, out);
                let _ = write!(out, "{}: ", Value::from(name.as_str()));
                print(member, inner, out);
            }
            let _ = write!(out, "\n{:indent$}}}", "");
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                begin(at, inner, out);
                print(item, inner, out);
            }
            let _ = write!(out, "\n{:indent$}]", "");
        }
        _ => out.push_str(&line),
    }
}

fn begin(at: usize, indent: usize, out: &mut String) {
    let _ = write!(out, "{}\n{:indent$}", if at > 0 { "," } else { "" }, "");
}

fn flat(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            let members = members
                .into_iter()
                .map(|(name, member)| format!("{}: {}", Value::from(name.as_str()), flat(member)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flat).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fits_stays_on_a_line() {
        let long = "x".repeat(60);
        let mut out = String::new();
        print(&json!({"b": [1, {"c": null}], "a": {"one": long, "two": long}}), 0, &mut out);
        let expected = format!(
            "{{\n  \"a\": {{\n    \"one\": \"{long}\",\n    \"two\": \"{long}\"\n  }},\n  \"b\": [1, {{\"c\": null}}]\n}}"
        );
        assert_eq!(out, expected);
    }
}
