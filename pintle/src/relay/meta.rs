//! The `_meta` of params and results that a relay passes on.

use pintle_types::RawObject;
use serde::Serialize;
use serde_json::value::to_raw_value;

/// Removes members of the metadata of params or of a result.
pub(super) fn without_meta(object: RawObject, keys: &[&str]) -> RawObject {
    without_members(object, &[], keys)
}

/// Removes members of params or of a result, and of their metadata.
pub(super) fn without_members(object: RawObject, names: &[&str], keys: &[&str]) -> RawObject {
    let meta = object.object_member("_meta").ok().flatten();
    let meta = meta.filter(|meta| keys.iter().any(|key| meta.get(key).is_some()));
    if meta.is_none() && names.iter().all(|name| object.get(name).is_none()) {
        return object;
    }
    // None of the names has to be escaped.
    let others = object.filtered(|name| !names.contains(&name) && (meta.is_none() || name != "_meta"));
    let kept = meta.map(|meta| meta.filtered(|name| !keys.contains(&name)));
    match kept.filter(|kept| !kept.is_empty()) {
        Some(kept) => others.with_object("_meta", &kept),
        None => others,
    }
}

/// Sets a member of the metadata of params.
pub(super) fn with_meta(object: &RawObject, key: &str, value: &impl Serialize) -> RawObject {
    let meta = object.object_member("_meta").ok().flatten().unwrap_or_default();
    let value = to_raw_value(value);
    value.map_or_else(|_| object.clone(), |value| object.with_object("_meta", &meta.with(key, &value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escaped_name_is_removed_as_the_name_it_spells() {
        let object: RawObject = r#"{"_meta":{"a\/b":1,"c":2}}"#.parse().unwrap();
        assert_eq!(without_meta(object.clone(), &["a/b"]).as_str(), r#"{"_meta":{"c":2}}"#);
        assert_eq!(with_meta(&object, "a/b", &3).as_str(), r#"{"_meta":{"c":2,"a/b":3}}"#);
    }

    #[test]
    fn only_the_named_members_change() {
        let object: RawObject = r#"{"_meta":{"a":1.50,"b":{"c":[]}},"x":1}"#.parse().unwrap();
        let without = without_meta(object.clone(), &["b", "z"]);
        assert_eq!(without.get("_meta"), Some(r#"{"a":1.50}"#));
        assert_eq!(without.get("x"), Some("1"));
        assert_eq!(without_meta(object.clone(), &["z"]).as_str(), object.as_str());
        assert_eq!(without_meta(without, &["a"]).as_str(), r#"{"x":1}"#);
        let members = without_members(object.clone(), &["x", "y"], &["a"]);
        assert_eq!(members.as_str(), r#"{"_meta":{"b":{"c":[]}}}"#);
        assert_eq!(
            without_members(object.clone(), &["x"], &[]).as_str(),
            r#"{"_meta":{"a":1.50,"b":{"c":[]}}}"#
        );
        assert_eq!(without_members(object.clone(), &["y"], &["z"]).as_str(), object.as_str());
        let with = with_meta(&object, "b", &2);
        assert_eq!(with.decode_member::<RawObject>("_meta").unwrap().unwrap().get("a"), Some("1.50"));
        assert_eq!(with.decode_member::<RawObject>("_meta").unwrap().unwrap().get("b"), Some("2"));
        let empty = RawObject::empty();
        assert_eq!(with_meta(&empty, "a", &"b").as_str(), r#"{"_meta":{"a":"b"}}"#);
    }
}
