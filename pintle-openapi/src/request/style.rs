//! Values as the text of a request, by the styles of OpenAPI.

use percent_encoding::{AsciiSet, percent_encode};
use serde_json::{Map, Value};

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
            Value::Object(members) => Self::Pairs(pairs(members)),
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

fn pairs(members: &Map<String, Value>) -> Vec<(String, String)> {
    let members = members.iter().filter(|(_, value)| !value.is_null());
    members.map(|(name, value)| (name.clone(), text(value))).collect()
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

    /// Appends the parts of a query or a form that a value is.
    pub(super) fn append(self, query: &mut Vec<String>, name: &str, value: &Value) -> Result<(), String> {
        if self.style == Style::DeepObject {
            return self.deep(query, &encode(name), value, 0);
        }
        let between = match self.style {
            Style::SpaceDelimited => "%20",
            Style::PipeDelimited => "%7C",
            _ => ",",
        };
        let encoded = encode(name);
        match Flat::of(value) {
            Flat::One(text) => query.push(format!("{encoded}={}", self.value(&text))),
            Flat::List(items) if self.explode => {
                query.extend(items.iter().map(|item| format!("{encoded}={}", self.value(item))));
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
                    query.push(format!("{encoded}={}", texts.join(between)));
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

/// Appends a parameter to a query.
pub(super) fn query(query: &mut Vec<String>, parameter: &Parameter, value: &Value) -> Result<(), String> {
    let Encoding::Style { style, explode } = parameter.encoding else {
        query.push(format!("{}={}", encode(&parameter.name), encode(&value.to_string())));
        return Ok(());
    };
    let style = PairStyle { style, explode, allow_reserved: parameter.allow_reserved };
    style.append(query, &parameter.name, value)
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

/// Appends a parameter to the cookies.
pub(super) fn cookie(cookies: &mut Vec<String>, parameter: &Parameter, value: &Value) {
    let name = &parameter.name;
    match (parameter.encoding, Flat::of(value)) {
        (Encoding::Json, _) => cookies.push(format!("{name}={}", encode(&value.to_string()))),
        (Encoding::Style { explode: true, .. }, Flat::List(items)) => {
            cookies.extend(items.iter().map(|item| format!("{name}={}", encode(item))));
        }
        (Encoding::Style { explode: true, .. }, Flat::Pairs(pairs)) => {
            cookies.extend(pairs.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))));
        }
        (_, flat) => {
            let texts: Vec<_> = flat.texts().iter().map(|text| encode(text)).collect();
            cookies.push(format!("{name}={}", texts.join(",")));
        }
    }
}
