use std::collections::BTreeMap;

use pintle::types::JsonObject;
use serde_json::Value;

use crate::{CallFault, argument::Argument};

/// The most bytes of one word of a command: what Linux passes to a program.
pub(crate) const MAX_WORD: usize = (128 << 10) - 1;

/// A text with places.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Text(pub(crate) Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Literal(String),
    Place(Place),
}

/// A place for a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) name: String,
    /// The text in place of the value, if there is one.
    pub(crate) text: Option<String>,
    pub(crate) is_list: bool,
}

impl Text {
    /// Reads a text with places. Lists have a place only in a word of their own.
    pub(crate) fn read(
        text: &str,
        arguments: &BTreeMap<String, Argument>,
        allows_lists: bool,
    ) -> Result<Self, String> {
        Self(Self::parts(text, arguments)?).refuse_lists(allows_lists)
    }

    /// Reads the parts of a text.
    pub(crate) fn parts(text: &str, arguments: &BTreeMap<String, Argument>) -> Result<Vec<Part>, String> {
        if text.contains('\0') {
            return Err("a text holds a NUL, which nothing takes: remove it".to_owned());
        }
        let (mut parts, mut literal, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            literal += &rest[..at];
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                literal += brace;
                rest = after;
                continue;
            }
            let inner = rest.split_once('}').filter(|_| brace == "{");
            let Some((inner, after)) = inner else {
                return Err(format!(
                    "`{text}` has a `{brace}` of no place: write `{brace}{brace}` for a brace"
                ));
            };
            rest = after;
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(Part::Place(Place::read(inner, arguments)?));
        }
        literal += rest;
        if !literal.is_empty() || parts.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(parts)
    }

    /// Refuses a list, unless it is allowed and a word of its own.
    pub(crate) fn refuse_lists(self, allows_lists: bool) -> Result<Self, String> {
        let list = self.places().find(|place| place.is_list);
        match list.filter(|_| !allows_lists || self.0.len() > 1) {
            Some(Place { name, .. }) => {
                Err(format!("`{name}` is a list, which needs a word of its own: write `\"{{{name}}}\"`"))
            }
            None => Ok(self),
        }
    }

    /// Splits the text wherever a letter is in its literals.
    pub(crate) fn split_literals(self, letter: char) -> Vec<Self> {
        let (mut texts, mut last) = (Vec::new(), Self::default());
        for part in self.0 {
            let Part::Literal(text) = part else {
                last.0.push(part);
                continue;
            };
            for (number, piece) in text.split(letter).enumerate() {
                if number > 0 {
                    texts.push(std::mem::take(&mut last));
                }
                if !piece.is_empty() {
                    last.0.push(Part::Literal(piece.to_owned()));
                }
            }
        }
        texts.push(last);
        texts
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Changes the literals.
    pub(crate) fn map_literals(
        self,
        change: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Self, String> {
        let changed = self.0.into_iter().map(|part| match part {
            Part::Literal(text) => change(&text).map(Part::Literal),
            Part::Place(place) => Ok(Part::Place(place)),
        });
        changed.collect::<Result<_, _>>().map(Self)
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        self.0.iter().filter_map(|part| match part {
            Part::Place(place) => Some(place),
            Part::Literal(_) => None,
        })
    }

    pub(crate) fn place(&self) -> Option<&Place> {
        self.places().next()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.places().map(|place| &*place.name)
    }

    /// Returns the words that the text becomes in a call: none if an argument is left out.
    pub(crate) fn fill(&self, arguments: &JsonObject) -> Result<Vec<String>, CallFault> {
        self.places().try_for_each(|place| place.values(arguments).map(drop))?;
        let words = self.texts(arguments);
        match words.iter().any(|word| word.len() > MAX_WORD) {
            true => Err(too_long(self.names().next().unwrap_or_default())),
            false => Ok(words),
        }
    }

    /// Returns the texts that it becomes in a call: one for each element of a list, and none if an argument is left out.
    pub(crate) fn texts(&self, arguments: &JsonObject) -> Vec<String> {
        self.texts_with(arguments, str::to_owned)
    }

    /// Returns the texts that it becomes in a call, with values that are encoded.
    pub(crate) fn texts_with(&self, arguments: &JsonObject, encode: impl Fn(&str) -> String) -> Vec<String> {
        if let [Part::Place(place)] = &self.0[..] {
            return place.texts(arguments).iter().map(|text| encode(text)).collect();
        }
        let mut whole = String::new();
        for part in &self.0 {
            match part {
                Part::Literal(text) => whole += text,
                Part::Place(place) => match place.texts(arguments).pop() {
                    Some(value) => whole += &encode(&value),
                    None => return Vec::new(),
                },
            }
        }
        vec![whole]
    }

    /// Returns the text that it becomes in a call, where nothing is left out: an argument that is has no text.
    pub(crate) fn print(&self, arguments: &JsonObject) -> String {
        let print = |part: &Part| match part {
            Part::Literal(text) => text.clone(),
            Part::Place(place) => place.texts(arguments).concat(),
        };
        self.0.iter().map(print).collect()
    }
}

fn too_long(name: &str) -> CallFault {
    CallFault(format!(
        "`{name}` is longer than {MAX_WORD} bytes, which no program takes as a word: send less, or have the tool use `stdin`"
    ))
}

impl Place {
    pub(crate) fn read(inner: &str, arguments: &BTreeMap<String, Argument>) -> Result<Self, String> {
        let (name, text) = match inner.split_once('?') {
            Some((name, text)) => (name, Some(text.to_owned())),
            None => (inner, None),
        };
        let Some(argument) = arguments.get(name) else {
            let known: Vec<String> = arguments.keys().map(|name| format!("`{name}`")).collect();
            return Err(match known.is_empty() {
                true => format!(
                    "`{{{inner}}}` is no argument of the tool: add `{name} = \"string\"` to `arguments`"
                ),
                false => format!("`{{{inner}}}` is no argument of the tool, which has {}", known.join(", ")),
            });
        };
        let is_list = text.is_none() && argument.schema.get("type").is_some_and(|kind| kind == "array");
        Ok(Self { name: name.to_owned(), text, is_list })
    }

    /// Returns the texts of the value: one, or one of each element of a list, or none.
    pub(crate) fn texts(&self, arguments: &JsonObject) -> Vec<String> {
        let value = arguments.get(&self.name).filter(|value| !value.is_null());
        match (&self.text, value) {
            (_, None) => Vec::new(),
            (Some(_), Some(Value::Bool(false))) => Vec::new(),
            (Some(text), Some(_)) => vec![text.clone()],
            (None, Some(Value::Array(values))) => values.iter().map(text_of).collect(),
            (None, Some(value)) => vec![text_of(value)],
        }
    }

    /// Returns the texts of the value, each of which can be a word.
    pub(crate) fn values(&self, arguments: &JsonObject) -> Result<Vec<String>, CallFault> {
        let texts = self.texts(arguments);
        if texts.iter().any(|text| text.contains('\0')) {
            let message = format!("`{}` holds a NUL, which no program takes: remove it", self.name);
            return Err(CallFault(message));
        }
        match texts.iter().any(|text| text.len() > MAX_WORD) {
            true => Err(too_long(&self.name)),
            false => Ok(texts),
        }
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // An integer may be written as `1.0`, or as `1e3`.
        Value::Number(number) if number.is_f64() => match number.as_f64() {
            Some(whole) if whole.fract() == 0.0 && whole.abs() < 9.0e15 => format!("{whole:.0}"),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}
