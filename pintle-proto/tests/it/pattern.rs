//! Comparing what came with what was expected.
//!
//! `"*"` stands for any value, `"…"` at a string's end for any rest, a member named `"…"` for any other members, and
//! `"$name"` for a value that is remembered the first time and the same from then on.

use std::collections::BTreeMap;

use serde_json::Value;

pub(crate) type Names = BTreeMap<String, Value>;

/// Where `came` differs from `expected`, if it does.
pub(crate) fn mismatch(expected: &Value, came: &Value, names: &mut Names) -> Option<String> {
    let differs = |at: &str| Some(format!("{at}: expected {expected}, came {came}"));
    match (expected, came) {
        (Value::String(any), _) if any == "*" => None,
        (Value::String(name), _) if name.starts_with('$') => match names.get(name) {
            Some(known) if known == came => None,
            Some(known) => Some(format!(": `{name}` was {known}, came {came}")),
            None => {
                names.insert(name.clone(), came.clone());
                None
            }
        },
        (Value::String(start), Value::String(text)) if start.ends_with('…') => {
            if text.starts_with(start.trim_end_matches('…')) { None } else { differs("") }
        }
        (Value::Object(members), Value::Object(others)) => {
            let open = members.contains_key("…");
            if let Some(more) = others.keys().find(|name| !open && !members.contains_key(*name)) {
                return Some(format!("/{more}: nothing was expected, came {}", others[more]));
            }
            members.iter().filter(|(name, _)| *name != "…").find_map(|(name, member)| {
                let Some(other) = others.get(name) else {
                    return Some(format!("/{name}: expected {member}, came nothing"));
                };
                mismatch(member, other, names).map(|message| format!("/{name}{message}"))
            })
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            items.iter().zip(others).enumerate().find_map(|(at, (item, other))| {
                mismatch(item, other, names).map(|message| format!("/{at}{message}"))
            })
        }
        _ if expected == came => None,
        _ => differs(""),
    }
}

/// Puts remembered values in the place of their names; `"$name+"` is the value with something behind it.
pub(crate) fn fill(value: &mut Value, names: &Names) {
    match value {
        Value::String(name) if name.starts_with('$') && name.ends_with('+') => {
            let known = names.get(name.trim_end_matches('+')).and_then(Value::as_str);
            *value = format!("{}-TAMPERED", known.expect("a string that has come")).into();
        }
        Value::String(name) if name.starts_with('$') => {
            *value = names.get(name).unwrap_or_else(|| panic!("`{name}` has not come yet")).clone();
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, names)),
        Value::Object(members) => members.values_mut().for_each(|member| fill(member, names)),
        _ => {}
    }
}
