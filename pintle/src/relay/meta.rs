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
    let meta: Option<RawObject> = object.decode_member("_meta").ok().flatten();
    let meta = meta.filter(|meta| keys.iter().any(|key| meta.get(key).is_some()));
    let has_more = |meta: &&RawObject| meta.iter().any(|(name, _)| !keys.contains(&name));
    let kept = meta.as_ref().filter(has_more).map(|meta| meta.without(keys));
    let mut removed = names.to_vec();
    removed.extend(meta.map(|_| "_meta"));
    if removed.iter().all(|name| object.get(name).is_none()) {
        return object;
    }
    let object = object.without(&removed);
    kept.map(|kept| object.with_object("_meta", &kept)).unwrap_or(object)
}

/// Sets a member of the metadata of params.
pub(super) fn with_meta(object: &RawObject, key: &str, value: &impl Serialize) -> RawObject {
    let meta: Option<RawObject> = object.decode_member("_meta").ok().flatten();
    let meta = meta.unwrap_or_else(RawObject::empty);
    let value = to_raw_value(value);
    value.map_or_else(|_| object.clone(), |value| object.with_object("_meta", &meta.with(key, &value)))
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
