//! References within one schema.

use std::collections::HashMap;

use serde_json::Value;

/// The names within a schema, found once.
pub(super) struct Names {
    /// Anchors and the pointers to where they are.
    anchors: HashMap<String, String>,
    /// A part has a name of its own, under which fragments mean something else. Only the engine knows what.
    embeds: bool,
}

impl Names {
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

/// A schema and the names in it.
#[derive(Clone, Copy)]
pub(super) struct Local<'a> {
    root: &'a Value,
    names: &'a Names,
}

impl<'a> Local<'a> {
    pub(super) fn new(root: &'a Value, names: &'a Names) -> Self {
        Self { root, names }
    }

    pub(super) fn root(self) -> &'a Value {
        self.root
    }

    pub(super) fn embeds(self) -> bool {
        self.names.embeds
    }

    /// What a reference means, if it leads to a place here by pointer or anchor.
    pub(super) fn target(self, reference: &str) -> Option<&'a Value> {
        if self.names.embeds {
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
        self.root.pointer(self.names.anchors.get(fragment)?)
    }

    /// The schema that is meant: references followed while there are any.
    pub(super) fn meant(self, mut schema: &'a Value) -> &'a Value {
        // A longer row of references was refused.
        for _ in 0..super::turns::MOST {
            let reference = schema.get("$ref").and_then(Value::as_str);
            let Some(target) = reference.and_then(|reference| self.target(reference)) else { break };
            schema = target;
        }
        schema
    }
}

/// Lengthens a JSON pointer by one name.
pub(super) fn lengthen(pointer: &mut String, name: &str) {
    pointer.push('/');
    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
}

fn named(value: &Value) -> bool {
    value.get("$id").is_some_and(Value::is_string) || below(value).any(named)
}

/// The parts of a value, one level down.
pub(super) fn below(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Object(members) => Box::new(members.values()),
        Value::Array(items) => Box::new(items.iter()),
        _ => Box::new(std::iter::empty()),
    }
}

/// A fragment without its percent signs.
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
