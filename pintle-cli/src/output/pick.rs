use std::str::FromStr;

use serde_json::Value;

/// A path into JSON, from `--pick`: `.tools[0].name`, `.tools[].name`, `."odd name"`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Pick {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Step {
    Member(String),
    Item(usize),
    Each,
}

impl Pick {
    /// Returns the values at the path. If there are none, the error names what there is.
    pub(crate) fn apply<'a>(&self, value: &'a Value) -> Result<Vec<&'a Value>, String> {
        let mut found = vec![value];
        for step in &self.steps {
            let mut next = Vec::new();
            let mut absent = None;
            for value in found {
                match step.of(value) {
                    Ok(values) => next.extend(values),
                    // Others of a list may have it.
                    Err(reason) => drop(absent.get_or_insert(reason)),
                }
            }
            if let (true, Some(reason)) = (next.is_empty(), absent) {
                return Err(reason);
            }
            found = next;
        }
        Ok(found)
    }
}

impl Step {
    /// Returns the values that the step leads to from a value.
    fn of<'a>(&self, value: &'a Value) -> Result<Vec<&'a Value>, String> {
        match (self, value) {
            (Self::Member(name), Value::Object(members)) => match members.get(name) {
                Some(member) => Ok(vec![member]),
                None => Err(missing(name, members.keys().map(String::as_str))),
            },
            (Self::Item(at), Value::Array(items)) => match items.get(*at) {
                Some(item) => Ok(vec![item]),
                None => Err(format!("no item [{at}]: the list has {}", items.len())),
            },
            (Self::Each, Value::Array(items)) => Ok(items.iter().collect()),
            (Self::Each, Value::Object(members)) => Ok(members.values().collect()),
            (Self::Member(name), value) => Err(format!("no member `{name}`: the value is {}", kind(value))),
            (Self::Item(_) | Self::Each, value) => Err(format!("no items: the value is {}", kind(value))),
        }
    }
}

fn missing<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.take(20).map(|name| format!("`{name}`")).collect();
    match known.is_empty() {
        true => format!("no member `{name}`: the object is empty"),
        false => format!("no member `{name}`: there are {}", known.join(", ")),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

impl FromStr for Pick {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || "write a path as `.tools[0].name`".to_owned();
        let mut rest = text;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('[') {
                let (index, after) = after.split_once(']').ok_or_else(invalid)?;
                steps.push(match index {
                    "" => Step::Each,
                    index => Step::Item(index.parse().map_err(|_| invalid())?),
                });
                rest = after;
            } else if let Some(after) = rest.strip_prefix(".\"") {
                let (name, after) = after.split_once('"').ok_or_else(invalid)?;
                steps.push(Step::Member(name.to_owned()));
                rest = after;
            } else {
                // The first dot may be left out, and a lone one is the whole value.
                let after = match rest.strip_prefix('.') {
                    Some(after) => after,
                    None if steps.is_empty() => rest,
                    None => return Err(invalid()),
                };
                let end = after.find(['.', '[']).unwrap_or(after.len());
                let (name, after) = after.split_at(end);
                match name {
                    "" if steps.is_empty() && rest.starts_with('.') && !after.starts_with('.') => {}
                    "" => return Err(invalid()),
                    name => steps.push(Step::Member(name.to_owned())),
                }
                rest = after;
            }
        }
        Ok(Self { steps })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pick(path: &str) -> Result<Value, String> {
        let value = json!({"tools": [{"name": "a"}, {"name": "b", "hint": true}], "odd name": 1});
        let found = path.parse::<Pick>()?;
        let found = found.apply(&value)?;
        Ok(json!(found))
    }

    #[test]
    fn a_path_finds_values() {
        assert_eq!(pick(".tools[1].name"), Ok(json!(["b"])));
        assert_eq!(pick("tools[].name"), Ok(json!(["a", "b"])));
        assert_eq!(pick("tools[].hint"), Ok(json!([true])));
        assert_eq!(pick(".\"odd name\""), Ok(json!([1])));
        assert_eq!(pick(".").unwrap()[0]["odd name"], 1);
        assert_eq!(pick(".[]").unwrap()[1], 1);
    }

    #[test]
    fn an_error_names_what_there_is() {
        assert_eq!(pick(".tool"), Err("no member `tool`: there are `tools`, `odd name`".into()));
        assert_eq!(pick(".tools[2]"), Err("no item [2]: the list has 2".into()));
        assert_eq!(pick(".tools.name"), Err("no member `name`: the value is a list".into()));
        for bad in [".tools[x]", "..a", ".tools[0", ".tools[0]name", ".\"a"] {
            assert!(pick(bad).unwrap_err().contains("write a path"), "{bad}");
        }
    }
}
