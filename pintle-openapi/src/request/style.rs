//! Values as the text of a request, by the styles of OpenAPI.

use percent_encoding::{AsciiSet, percent_encode};
use serde_json::Value;

use crate::{
    operation::{Encoding, Parameter, Style},
    url::{VALUE, encode},
};

/// With `allowReserved`: the reserved characters that end no value in a query, and no query.
const RESERVED: &AsciiSet = &VALUE
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';')
    .remove(b'=');
/// How deep `deepObject` nests.
const MAX_DEPTH: usize = 16;

/// A value with at most one level.
enum Flat {
    One(String),
    List(Vec<String>),
    Pairs(Vec<(String, String)>),
}

impl Flat {
    fn of(value: &Value) -> Self {
        match value {
            Value::Array(items) => {
                Self::List(items.iter().filter(|item| !item.is_null()).map(text).collect())
            }
            Value::Object(members) => {
                let members = members.iter().filter(|(_, value)| !value.is_null());
                Self::Pairs(members.map(|(name, value)| (name.clone(), text(value))).collect())
            }
            value => Self::One(text(value)),
        }
    }

    /// Returns the texts of all parts, names too.
    fn texts(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::List(items) => items,
            Self::Pairs(pairs) => pairs.into_iter().flat_map(|(name, value)| [name, value]).collect(),
        }
    }
}

/// Returns a value as text: what has parts, as JSON.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Returns the value of a parameter of a path, encoded.
pub(super) fn path(parameter: &Parameter, value: &Value) -> String {
    let Encoding::Style { style, explode } = parameter.encoding else { return encode(&value.to_string()) };
    let name = encode(&parameter.name);
    let prefix = match style {
        Style::Label => ".",
        Style::Matrix => ";",
        _ => "",
    };
    let between = match (style, explode) {
        (Style::Label, true) => ".",
        (Style::Matrix, true) => ";",
        _ => ",",
    };
    let named = |text: String| match style {
        Style::Matrix if text.is_empty() => name.clone(),
        Style::Matrix => format!("{name}={text}"),
        _ => text,
    };
    let written = match Flat::of(value) {
        Flat::One(text) => named(encode(&text)),
        Flat::List(items) if explode => {
            items.iter().map(|item| named(encode(item))).collect::<Vec<_>>().join(between)
        }
        Flat::Pairs(pairs) if explode => joined_pairs(&pairs, between),
        flat => named(flat.texts().iter().map(|text| encode(text)).collect::<Vec<_>>().join(",")),
    };
    format!("{prefix}{written}")
}

/// Returns the texts that a value of a path is made of, to be looked at before they are encoded.
pub(super) fn texts(value: &Value) -> Vec<String> {
    Flat::of(value).texts()
}

fn joined_pairs(pairs: &[(String, String)], between: &str) -> String {
    let pairs = pairs.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    pairs.collect::<Vec<_>>().join(between)
}

/// How the name and the value of a part of a query or a form are encoded.
#[derive(Clone, Copy)]
pub(super) struct PairStyle {
    pub(super) style: Style,
    pub(super) explode: bool,
    pub(super) allow_reserved: bool,
}

impl PairStyle {
    fn value(self, text: &str) -> String {
        let set = if self.allow_reserved { RESERVED } else { VALUE };
        percent_encode(text.as_bytes(), set).to_string()
    }

    /// Appends the parts of a query, a form or the cookies that a value is. The name is encoded.
    pub(super) fn append(self, query: &mut Vec<String>, name: &str, value: &Value) -> Result<(), String> {
        if self.style == Style::DeepObject {
            return self.deep(query, name, value, 0);
        }
        let between = match self.style {
            Style::SpaceDelimited => "%20",
            Style::PipeDelimited => "%7C",
            _ => ",",
        };
        match Flat::of(value) {
            Flat::One(text) => query.push(format!("{name}={}", self.value(&text))),
            Flat::List(items) if self.explode => {
                query.extend(items.iter().map(|item| format!("{name}={}", self.value(item))));
            }
            Flat::Pairs(pairs) if self.explode => {
                let pairs =
                    pairs.iter().map(|(name, value)| format!("{}={}", encode(name), self.value(value)));
                query.extend(pairs);
            }
            flat => {
                let texts = flat.texts();
                if !texts.is_empty() {
                    let texts: Vec<_> = texts.iter().map(|text| self.value(text)).collect();
                    query.push(format!("{name}={}", texts.join(between)));
                }
            }
        }
        Ok(())
    }

    /// Appends an object with the names of its parts in brackets, and lists with numbers there.
    fn deep(self, query: &mut Vec<String>, name: &str, value: &Value, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} deep; flatten it"));
        }
        let below = |part: &str| format!("{name}%5B{}%5D", encode(part));
        match value {
            Value::Null => Ok(()),
            Value::Object(members) => {
                members.iter().try_for_each(|(part, value)| self.deep(query, &below(part), value, depth + 1))
            }
            Value::Array(items) => {
                let mut items = items.iter().enumerate();
                items.try_for_each(|(at, item)| self.deep(query, &below(&at.to_string()), item, depth + 1))
            }
            value => {
                query.push(format!("{name}={}", self.value(&text(value))));
                Ok(())
            }
        }
    }
}

/// Appends a parameter to a query, or to the cookies. The name is encoded.
pub(super) fn pairs(
    pairs: &mut Vec<String>,
    name: &str,
    parameter: &Parameter,
    value: &Value,
) -> Result<(), String> {
    let Encoding::Style { style, explode } = parameter.encoding else {
        pairs.push(format!("{name}={}", encode(&value.to_string())));
        return Ok(());
    };
    PairStyle { style, explode, allow_reserved: parameter.allow_reserved }.append(pairs, name, value)
}

/// Returns the value of a header. It is not encoded.
pub(super) fn header(parameter: &Parameter, value: &Value) -> String {
    match (parameter.encoding, Flat::of(value)) {
        (Encoding::Json, _) => value.to_string(),
        (Encoding::Style { explode: true, .. }, Flat::Pairs(pairs)) => {
            let pairs = pairs.into_iter().map(|(name, value)| format!("{name}={value}"));
            pairs.collect::<Vec<_>>().join(",")
        }
        (_, flat) => flat.texts().join(","),
    }
}
