//! Why a value does not fit.
//!
//! The wrapped validator could list faults itself, but lists all of them, and under nested alternatives their number
//! doubles with every level. So it decides (also each keyword here), and this walk finds the words, within a budget.
//! What the walk cannot follow is told as a fault of the whole: it never overrules the validator.

use std::{collections::HashMap, mem, ptr};

use pintle_uri::nearest;
use serde_json::{Map, Value};

use super::{
    Fault,
    engine::Engine,
    fault::MOST_FAULTS,
    local::{Local, lengthen},
    words::{LEFT_OUT, expected, shown},
};

/// Pairs of schema and value that are looked at for one explanation, members and items counted again.
const MOST_STEPS: usize = 250_000;

/// Schemas within schemas, references followed.
const MOST_LEVELS: usize = 256;

/// The keywords that look at one value and nothing below it, in the order in which they are told.
const PLAIN: &[&str] = &[
    "enum",
    "const",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// Keywords that can refuse a value and that this walk does not follow.
const STRANGE: &[&str] =
    &["$dynamicRef", "$recursiveRef", "additionalItems", "dependencies", "unevaluatedItems"];

pub(super) fn explain(engine: &Engine, local: Local<'_>, value: &Value) -> Vec<Fault> {
    let mut faults = find(engine, local, value).0.faults;
    if faults.is_empty() {
        faults.push(Fault::wrong("", "what its schema asks for".to_owned(), shown(value)));
    }
    faults
}

/// What the walk finds, and whether it was lost on the way.
pub(super) fn find(engine: &Engine, local: Local<'_>, value: &Value) -> (Found, bool) {
    let mut walk = Walk {
        engine,
        local,
        steps: MOST_STEPS,
        lost: false,
        keywords: HashMap::new(),
        verdicts: HashMap::new(),
    };
    let mut found = Found::up_to(MOST_FAULTS);
    walk.look(local.root(), value, &mut Place::default(), &mut found);
    (found, walk.lost)
}

/// The state of one explanation. Schemas and values stay where they are meanwhile, so addresses name them.
pub(super) struct Walk<'a> {
    engine: &'a Engine,
    pub(super) local: Local<'a>,
    steps: usize,
    /// Something could not be followed, so "no fault found" means nothing.
    pub(super) lost: bool,
    keywords: HashMap<(&'static str, usize), Option<Engine>>,
    pub(super) verdicts: HashMap<(usize, usize), Option<bool>>,
}

/// The faults so far, or only whether there is one.
pub(super) struct Found {
    pub(super) faults: Vec<Fault>,
    pub(super) any: bool,
    most: usize,
}

impl Found {
    pub(super) fn up_to(most: usize) -> Self {
        Self { faults: Vec::new(), any: false, most }
    }

    pub(super) fn is_full(&self) -> bool {
        self.any && self.faults.len() >= self.most
    }

    pub(super) fn add(&mut self, fault: impl FnOnce() -> Fault) {
        self.any = true;
        if self.faults.len() < self.most {
            let fault = fault();
            // Two ways through a schema may find the same thing.
            if !self.faults.contains(&fault) {
                self.faults.push(fault);
            }
        }
    }
}

/// Where in the value the walk is, and how deep in the schema.
#[derive(Default)]
pub(super) struct Place {
    pub(super) pointer: String,
    level: usize,
}

impl Place {
    /// The place of a member or item.
    pub(super) fn at<T>(&mut self, name: &str, look: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        lengthen(&mut self.pointer, name);
        let told = look(self);
        self.pointer.truncate(length);
        told
    }

    pub(super) fn pointer_to(&mut self, name: &str) -> String {
        self.at(name, |place| place.pointer.clone())
    }
}

impl<'a> Walk<'a> {
    /// Adds what is wrong with `value` by `schema`.
    pub(super) fn look(&mut self, schema: &'a Value, value: &Value, place: &mut Place, found: &mut Found) {
        if found.is_full() {
            return;
        }
        if self.steps == 0 || place.level == MOST_LEVELS {
            self.lost = true;
            return;
        }
        let below = match value {
            Value::Object(members) => members.len(),
            Value::Array(items) => items.len(),
            _ => 0,
        };
        self.steps = self.steps.saturating_sub(1 + below);
        place.level += 1;
        match schema {
            Value::Bool(true) => {}
            Value::Bool(false) => {
                found.add(|| Fault::wrong(&place.pointer, LEFT_OUT.to_owned(), shown(value)));
            }
            Value::Object(schema) => self.look_at_keywords(schema, value, place, found),
            _ => self.lost = true,
        }
        place.level -= 1;
    }

    fn look_at_keywords(
        &mut self,
        schema: &'a Map<String, Value>,
        value: &Value,
        place: &mut Place,
        found: &mut Found,
    ) {
        if let Some(Value::String(reference)) = schema.get("$ref") {
            match self.local.target(reference) {
                Some(target) => self.look(target, value, place, found),
                None => self.lost = true,
            }
            if !self.engine.reads_beside_references() {
                return;
            }
        }
        if let Some(operand) = schema.get("type")
            && self.refuses("type", operand, value)
        {
            let hint = unquoted(operand, value);
            found.add(|| {
                Fault::wrong(&place.pointer, expected("type", operand), shown(value)).with_hint(hint)
            });
            // What else the schema says was meant for another type.
            return;
        }
        for keyword in PLAIN {
            if let Some(operand) = schema.get(*keyword)
                && self.refuses(keyword, operand, value)
            {
                found.add(|| {
                    Fault::wrong(&place.pointer, expected(keyword, operand), shown(value))
                        .with_hint(meant(operand, value))
                });
            }
        }
        match value {
            Value::Object(members) => self.look_at_members(schema, members, value, place, found),
            Value::Array(items) => self.look_at_items(schema, items, place, found),
            _ => {}
        }
        self.look_at_alternatives(schema, value, place, found);
        if let (Some(unknown), Value::Object(members)) = (schema.get("unevaluatedProperties"), value)
            && !found.any
        {
            self.look_at_unevaluated(schema, unknown, members, value, place, found);
        }
        self.lost |= STRANGE.iter().any(|keyword| schema.contains_key(*keyword));
    }

    /// Whether `value` fits a part of the schema; nothing if that cannot be followed.
    pub(super) fn fits(&mut self, schema: &'a Value, value: &Value, place: &mut Place) -> Option<bool> {
        let key = (address(schema), address(value));
        if let Some(verdict) = self.verdicts.get(&key) {
            return *verdict;
        }
        let lost = mem::take(&mut self.lost);
        let mut found = Found::up_to(0);
        self.look(schema, value, place, &mut found);
        let verdict = match (found.any, self.lost) {
            (true, _) => Some(false),
            (false, true) => None,
            (false, false) => Some(true),
        };
        self.lost = lost || verdict.is_none();
        self.verdicts.insert(key, verdict);
        verdict
    }

    /// Whether one keyword that looks at nothing else refuses a value.
    pub(super) fn refuses(&mut self, keyword: &'static str, operand: &Value, value: &Value) -> bool {
        self.alone((keyword, address(operand)), operand, value) == Some(false)
    }

    /// Whether a pattern of `patternProperties` is for a name. It is a key, so its schema's address stands for it.
    pub(super) fn admits_name(&mut self, pattern: &str, matched: &Value, name: &str) -> bool {
        let key = ("pattern", address(matched));
        self.alone(key, &Value::from(pattern), &Value::from(name)) == Some(true)
    }

    fn alone(&mut self, key: (&'static str, usize), operand: &Value, value: &Value) -> Option<bool> {
        let engine = self.engine;
        let alone = self.keywords.entry(key).or_insert_with(|| engine.keyword(key.0, operand));
        let fits = alone.as_ref().map(|alone| alone.fits(value));
        self.lost |= fits.is_none();
        fits
    }
}

fn address(value: &Value) -> usize {
    ptr::from_ref(value).addr()
}

/// The text that one of the allowed values has, if a similar one came.
fn meant(operand: &Value, value: &Value) -> Option<String> {
    let known = operand.as_array()?.iter().filter_map(Value::as_str);
    let near = nearest(value.as_str()?, known)?;
    Some(did_you_mean(&Value::from(near)))
}

/// Models like to send what is asked for as a string.
fn unquoted(kinds: &Value, value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let asked = |kind: &str| match kinds {
        Value::Array(kinds) => kinds.iter().any(|each| each == kind),
        one => one == kind,
    };
    let inner: Value = serde_json::from_str(text).ok()?;
    match inner {
        Value::Object(_) if asked("object") => Some("send the object itself, not a string of it".to_owned()),
        Value::Array(_) if asked("array") => Some("send the list itself, not a string of it".to_owned()),
        Value::Number(ref number) if asked("number") || (asked("integer") && !number.is_f64()) => {
            Some(did_you_mean(&inner))
        }
        Value::Bool(_) if asked("boolean") => Some(did_you_mean(&inner)),
        Value::Null if asked("null") => Some(did_you_mean(&inner)),
        _ => None,
    }
}

pub(super) fn did_you_mean(value: &Value) -> String {
    format!("did you mean {}?", shown(value))
}
