use pintle::types::JsonObject;
use serde_json::Value;

/// Returns the members in which two front matters differ. Numbers are compared by their value.
pub(crate) fn differences<'a>(one: &'a JsonObject, other: &'a JsonObject) -> Vec<&'a str> {
    let differs =
        |(name, value): &(&String, &Value)| !other.get(*name).is_some_and(|other| same(value, other));
    let missing = other.keys().filter(|name| !one.contains_key(*name));
    let names = one.iter().filter(differs).map(|(name, _)| name).chain(missing);
    names.map(String::as_str).collect()
}

fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => differences(one, other).is_empty(),
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_compared_by_value() {
        let [one, other] = [json!({"a": 1, "b": [2.0], "c": 1}), json!({"a": 1.0, "b": [2], "d": 1})];
        assert_eq!(differences(one.as_object().unwrap(), other.as_object().unwrap()), ["c", "d"]);
    }
}
