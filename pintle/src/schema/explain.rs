//! Explains why a value does not match a schema.
//!
//! The wrapped validator could list faults itself, but it lists all of them, and with nested alternatives their number
//! doubles at every level. So the validator decides (also about each keyword here), and the [`Explainer`] describes the
//! faults within a budget. What it cannot follow is reported as a fault of the whole value: it never overrules the validator.

use std::{collections::HashMap, mem, ptr};

use pintle_uri::nearest;
use serde_json::{Map, Value};

use super::{
    Fault,
    engine::Engine,
    fault::MAX_FAULTS,
    local::{Local, lengthen},
    words::{LEFT_OUT, expected, shown},
};

/// The maximum number of pairs of schema and value per explanation, including members and items.
const MAX_STEPS: usize = 250_000;

/// The maximum nesting of schemas, including references.
const MAX_LEVELS: usize = 256;

/// The keywords that check a value without its members, in the order of the report.
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

/// The keywords that can refuse a value and are not explained.
const UNSUPPORTED: &[&str] =
    &["$dynamicRef", "$recursiveRef", "additionalItems", "dependencies", "unevaluatedItems"];

pub(super) fn explain(engine: &Engine, local: Local<'_>, value: &Value) -> Vec<Fault> {
    let mut faults = find(engine, local, value).0.faults;
    if faults.is_empty() {
        faults.push(Fault::wrong("", "what its schema asks for".to_owned(), shown(value)));
    }
    faults
}

/// Returns the faults, and whether the explanation is incomplete.
pub(super) fn find(engine: &Engine, local: Local<'_>, value: &Value) -> (Findings, bool) {
    let mut explainer = Explainer {
        engine,
        local,
        steps: MAX_STEPS,
        lost: false,
        keywords: HashMap::new(),
        verdicts: HashMap::new(),
    };
    let mut findings = Findings::up_to(MAX_FAULTS);
    explainer.look(local.root(), value, &mut InstanceLocation::default(), &mut findings);
    (findings, explainer.lost)
}

/// Explains one value. Schemas and values do not move meanwhile, so addresses identify them.
pub(super) struct Explainer<'a> {
    engine: &'a Engine,
    pub(super) local: Local<'a>,
    steps: usize,
    /// Whether something could not be followed, so that an empty result is inconclusive.
    pub(super) lost: bool,
    keywords: HashMap<(&'static str, usize), Option<Engine>>,
    pub(super) verdicts: HashMap<(usize, usize), Option<bool>>,
}

/// A bounded list of faults.
pub(super) struct Findings {
    pub(super) faults: Vec<Fault>,
    pub(super) any: bool,
    limit: usize,
}

impl Findings {
    pub(super) fn up_to(limit: usize) -> Self {
        Self { faults: Vec::new(), any: false, limit }
    }

    pub(super) fn is_full(&self) -> bool {
        self.any && self.faults.len() >= self.limit
    }

    pub(super) fn add(&mut self, fault: impl FnOnce() -> Fault) {
        self.any = true;
        if self.faults.len() < self.limit {
            let fault = fault();
            // Two paths through a schema may find the same fault.
            if !self.faults.contains(&fault) {
                self.faults.push(fault);
            }
        }
    }
}

/// The members of a schema or value.
pub(super) type Members = Map<String, Value>;

/// The position in the value, and the depth in the schema.
#[derive(Default)]
pub(super) struct InstanceLocation {
    pub(super) pointer: String,
    level: usize,
}

impl InstanceLocation {
    /// Calls `look` with the position at a member or item.
    pub(super) fn at<T>(&mut self, name: &str, look: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        lengthen(&mut self.pointer, name);
        let result = look(self);
        self.pointer.truncate(length);
        result
    }

    pub(super) fn pointer_to(&mut self, name: &str) -> String {
        self.at(name, |position| position.pointer.clone())
    }
}

impl<'a> Explainer<'a> {
    /// Adds the faults of `value` by `schema`.
    pub(super) fn look(
        &mut self,
        schema: &'a Value,
        value: &Value,
        position: &mut InstanceLocation,
        findings: &mut Findings,
    ) {
        if findings.is_full() {
            return;
        }
        if self.steps == 0 || position.level == MAX_LEVELS {
            self.lost = true;
            return;
        }
        let below = match value {
            Value::Object(members) => members.len(),
            Value::Array(items) => items.len(),
            _ => 0,
        };
        self.steps = self.steps.saturating_sub(1 + below);
        position.level += 1;
        match schema {
            Value::Bool(true) => {}
            Value::Bool(false) => {
                findings.add(|| Fault::wrong(&position.pointer, LEFT_OUT.to_owned(), shown(value)));
            }
            Value::Object(schema) => self.look_at_keywords(schema, value, position, findings),
            _ => self.lost = true,
        }
        position.level -= 1;
    }

    fn look_at_keywords(
        &mut self,
        schema: &'a Map<String, Value>,
        value: &Value,
        position: &mut InstanceLocation,
        findings: &mut Findings,
    ) {
        if let Some(Value::String(reference)) = schema.get("$ref") {
            match self.local.target(reference) {
                Some(target) => self.look(target, value, position, findings),
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
            findings.add(|| {
                Fault::wrong(&position.pointer, expected("type", operand), shown(value)).with_hint(hint)
            });
            // The other keywords are meant for another type.
            return;
        }
        for keyword in PLAIN {
            if let Some(operand) = schema.get(*keyword)
                && self.refuses(keyword, operand, value)
            {
                findings.add(|| {
                    Fault::wrong(&position.pointer, expected(keyword, operand), shown(value))
                        .with_hint(meant(operand, value))
                });
            }
        }
        match value {
            Value::Object(members) => self.look_at_members(schema, members, value, position, findings),
            Value::Array(items) => self.look_at_items(schema, items, position, findings),
            _ => {}
        }
        self.look_at_alternatives(schema, value, position, findings);
        if let (Some(unknown), Value::Object(members)) = (schema.get("unevaluatedProperties"), value)
            && !findings.any
        {
            self.look_at_unevaluated(schema, unknown, members, value, position, findings);
        }
        self.lost |= UNSUPPORTED.iter().any(|keyword| schema.contains_key(*keyword));
    }

    /// Returns whether `value` matches a part of the schema, or `None` if that is inconclusive.
    pub(super) fn fits(
        &mut self,
        schema: &'a Value,
        value: &Value,
        position: &mut InstanceLocation,
    ) -> Option<bool> {
        let key = (address(schema), address(value));
        if let Some(verdict) = self.verdicts.get(&key) {
            return *verdict;
        }
        let lost = mem::take(&mut self.lost);
        let mut findings = Findings::up_to(0);
        self.look(schema, value, position, &mut findings);
        let verdict = match (findings.any, self.lost) {
            (true, _) => Some(false),
            (false, true) => None,
            (false, false) => Some(true),
        };
        self.lost = lost || verdict.is_none();
        self.verdicts.insert(key, verdict);
        verdict
    }

    /// Returns whether one keyword alone refuses a value.
    pub(super) fn refuses(&mut self, keyword: &'static str, operand: &Value, value: &Value) -> bool {
        self.alone((keyword, address(operand)), operand, value) == Some(false)
    }

    /// Returns whether a pattern of `patternProperties` matches a name. It is a key, so its schema's address identifies it.
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

/// Suggests an allowed string that is similar to the value.
fn meant(operand: &Value, value: &Value) -> Option<String> {
    let known = operand.as_array()?.iter().filter_map(Value::as_str);
    let near = nearest(value.as_str()?, known)?;
    Some(did_you_mean(&Value::from(near)))
}

/// Suggests the value inside a string, which models tend to send instead of the value itself.
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
