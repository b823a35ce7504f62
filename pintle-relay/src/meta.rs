//! The `_meta` of params and results that a relay passes on.

use std::sync::Arc;

use pintle::types::{RawObject, keys};
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::lock::LastValue;

/// The metadata of the last result of the server behind: that of the next one is mostly the same.
#[derive(Debug, Default)]
pub(super) struct LastMeta(LastValue<ResultMeta>);

/// The metadata of a result of the server behind.
#[derive(Debug)]
struct ResultMeta {
    text: Box<str>,
    /// The members besides the name of the server, if there are any.
    kept: Option<RawObject>,
}

impl ResultMeta {
    /// Returns `None` if the metadata does not name the server.
    fn read(result: &RawObject, text: &str) -> Option<Self> {
        let meta = result.object_member("_meta").ok().flatten()?;
        meta.get(keys::SERVER_INFO)?;
        let kept = meta.filtered(|name| name != keys::SERVER_INFO);
        Some(Self { text: text.into(), kept: Some(kept).filter(|kept| !kept.is_empty()) })
    }
}

impl LastMeta {
    /// The longest metadata that is kept, in bytes.
    const MAX: usize = 1024;

    /// Removes members of a result, and the name of the server from its metadata.
    pub(super) fn without_server(&self, result: RawObject, names: &[&str]) -> RawObject {
        let Some(meta) = result.get("_meta").and_then(|text| self.of(&result, text)) else {
            return without_members(result, names, &[]);
        };
        let others = result.filtered(|name| name != "_meta" && !names.contains(&name));
        match &meta.kept {
            Some(kept) => others.with_object("_meta", kept),
            None => others,
        }
    }

    fn of(&self, result: &RawObject, text: &str) -> Option<Arc<ResultMeta>> {
        if let Some(last) = self.0.get(|last| *last.text == *text) {
            return Some(last);
        }
        let read = Arc::new(ResultMeta::read(result, text)?);
        if text.len() <= Self::MAX {
            self.0.set(read.clone());
        }
        Some(read)
    }
}

/// Removes members of the metadata of params or of a result.
pub(super) fn without_meta(object: RawObject, keys: &[&str]) -> RawObject {
    without_members(object, &[], keys)
}

/// Removes members of params or of a result, and of their metadata.
pub(super) fn without_members(object: RawObject, names: &[&str], keys: &[&str]) -> RawObject {
    let meta = if keys.is_empty() { None } else { object.object_member("_meta").ok().flatten() };
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
    fn the_name_of_the_server_is_removed_from_each_result() {
        let last = LastMeta::default();
        let info = format!(r#""{}":{{"name":"s"}}"#, keys::SERVER_INFO);
        let results = [
            (format!(r#"{{"a":1,"_meta":{{{info}}},"b":2}}"#), r#"{"a":1}"#),
            (format!(r#"{{"a":2,"_meta":{{{info}}}}}"#), r#"{"a":2}"#),
            (format!(r#"{{"_meta":{{{info},"c":3}},"a":3}}"#), r#"{"a":3,"_meta":{"c":3}}"#),
            (format!(r#"{{"_meta":{{{info},"c":4}},"a":4}}"#), r#"{"a":4,"_meta":{"c":4}}"#),
            (r#"{"a":5,"_meta":{"c":3},"b":5}"#.to_owned(), r#"{"a":5,"_meta":{"c":3}}"#),
            (r#"{"a":6,"_meta":null}"#.to_owned(), r#"{"a":6,"_meta":null}"#),
            (r#"{"a":7}"#.to_owned(), r#"{"a":7}"#),
        ];
        for (result, without) in results.iter().chain(results.iter().rev()) {
            assert_eq!(last.without_server(result.parse().unwrap(), &["b"]).as_str(), *without, "{result}");
        }
    }

    #[test]
    fn only_the_last_short_metadata_is_kept() {
        let last = LastMeta::default();
        let kept = || last.0.get(|_| true).map(|meta| meta.text.len());
        let result = |name: &str| -> RawObject {
            let info = keys::SERVER_INFO;
            format!(r#"{{"_meta":{{"{info}":{{"name":"{name}"}}}}}}"#).parse().unwrap()
        };
        assert_eq!(last.without_server(result("s"), &[]).as_str(), "{}");
        let short = kept();
        assert!(short.is_some());
        assert_eq!(last.without_server(result(&"s".repeat(LastMeta::MAX)), &[]).as_str(), "{}");
        assert_eq!(kept(), short);
    }

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
