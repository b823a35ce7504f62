//! The `_meta` of params and results that a relay passes on.

use pintle_types::RawObject;
use serde::Serialize;
use serde_json::value::to_raw_value;

/// Removes members of the metadata of params or of a result.
pub(super) fn without_meta(object: RawObject, keys: &[&str]) -> RawObject {
    let meta: Option<RawObject> = object.decode_member("_meta").ok().flatten();
    let Some(meta) = meta.filter(|meta| keys.iter().any(|key| meta.get(key).is_some())) else {
        return object;
    };
    let meta = meta.without(keys);
    match to_raw_value(&meta) {
        Ok(text) if !meta.is_empty() => object.with("_meta", &text),
        _ => object.without(&["_meta"]),
    }
}

/// Sets a member of the metadata of params.
pub(super) fn with_meta(object: &RawObject, key: &str, value: &impl Serialize) -> RawObject {
    let meta: Option<RawObject> = object.decode_member("_meta").ok().flatten();
    let meta = meta.unwrap_or_else(RawObject::empty);
    let with_value = to_raw_value(value).and_then(|value| to_raw_value(&meta.with(key, &value)));
    with_value.map_or_else(|_| object.clone(), |meta| object.with("_meta", &meta))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_members_change() {
        let object: RawObject = r#"{"_meta":{"a":1.50,"b":{"c":[]}},"x":1}"#.parse().unwrap();
        let without = without_meta(object.clone(), &["b", "z"]);
        assert_eq!(without.get("_meta"), Some(r#"{"a":1.50}"#));
        assert_eq!(without.get("x"), Some("1"));
        assert_eq!(without_meta(object.clone(), &["z"]).as_str(), object.as_str());
        assert_eq!(without_meta(without, &["a"]).as_str(), r#"{"x":1}"#);
        let with = with_meta(&object, "b", &2);
        assert_eq!(with.decode_member::<RawObject>("_meta").unwrap().unwrap().get("a"), Some("1.50"));
        assert_eq!(with.decode_member::<RawObject>("_meta").unwrap().unwrap().get("b"), Some("2"));
        let empty = RawObject::empty();
        assert_eq!(with_meta(&empty, "a", &"b").as_str(), r#"{"_meta":{"a":"b"}}"#);
    }
}
