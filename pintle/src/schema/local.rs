//! References within a schema.

use std::collections::HashMap;

use serde_json::Value;

/// The anchors within a schema, collected once.
pub(super) struct Anchors {
    /// JSON pointers by anchor.
    anchors: HashMap<String, String>,
    /// Whether a part has its own `$id`, relative to which only the engine resolves fragments.
    embeds: bool,
}

impl Anchors {
    pub(super) fn of(root: &Value) -> Self {
        let mut names = Self { anchors: HashMap::new(), embeds: below(root).any(named) };
        names.enter(root, &mut String::new());
        names
    }

    fn enter(&mut self, value: &Value, pointer: &mut String) {
        for anchor in ["$anchor", "$dynamicAnchor"].iter().filter_map(|key| value.get(key)?.as_str()) {
            self.anchors.entry(anchor.to_owned()).or_insert_with(|| pointer.clone());
        }
        let mut part = |name: &str, part: &Value| {
            let length = pointer.len();
            lengthen(pointer, name);
            self.enter(part, pointer);
            pointer.truncate(length);
        };
        match value {
            Value::Object(members) => members.iter().for_each(|(name, member)| part(name, member)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(at, item)| part(&at.to_string(), item))
            }
            _ => {}
        }
    }
}

/// A schema with its anchors.
#[derive(Clone, Copy)]
pub(super) struct Local<'a> {
    root: &'a Value,
    anchors: &'a Anchors,
}

impl<'a> Local<'a> {
    pub(super) fn new(root: &'a Value, anchors: &'a Anchors) -> Self {
        Self { root, anchors }
    }

    pub(super) fn root(self) -> &'a Value {
        self.root
    }

    pub(super) fn embeds(self) -> bool {
        self.anchors.embeds
    }

    /// Resolves a reference to a pointer or anchor in this schema.
    pub(super) fn target(self, reference: &str) -> Option<&'a Value> {
        if self.anchors.embeds {
            return None;
        }
        let own = self.root.get("$id").and_then(Value::as_str).unwrap_or_default();
        let fragment = match reference.strip_prefix('#') {
            Some(fragment) => fragment,
            None => reference.strip_prefix(own).filter(|_| !own.is_empty())?.strip_prefix('#')?,
        };
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&unescaped(fragment)?);
        }
        self.root.pointer(self.anchors.anchors.get(fragment)?)
    }

    /// Follows references, if there are any.
    pub(super) fn meant(self, mut schema: &'a Value) -> &'a Value {
        // A longer chain of references was refused.
        for _ in 0..super::turns::MAX_TURNS {
            let reference = schema.get("$ref").and_then(Value::as_str);
            let Some(target) = reference.and_then(|reference| self.target(reference)) else { break };
            schema = target;
        }
        schema
    }
}

/// Appends a name to a JSON pointer.
pub(super) fn lengthen(pointer: &mut String, name: &str) {
    pointer.push('/');
    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
}

fn named(value: &Value) -> bool {
    value.get("$id").is_some_and(Value::is_string) || below(value).any(named)
}

/// Returns the members or items of a value.
pub(super) fn below(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Object(members) => Box::new(members.values()),
        Value::Array(items) => Box::new(items.iter()),
        _ => Box::new(std::iter::empty()),
    }
}

/// Percent-decodes a fragment.
fn unescaped(fragment: &str) -> Option<String> {
    if !fragment.contains('%') {
        return Some(fragment.to_owned());
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
