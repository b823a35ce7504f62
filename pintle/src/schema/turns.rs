//! Limits on the references and alternatives ("turns") that apply to the same value: how many in a row, and how many in all.
//!
//! Each turn uses stack, for each level of a value. A value parsed from text has at most 128 levels, so a limit on turns
//! limits the stack. Alternatives of alternatives multiply, so their number is limited too.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{
    SchemaError,
    local::{Local, below},
};

/// The maximum number of turns. With 128 levels it needs half of a thread's 2 MiB of stack in an unoptimized build.
pub(super) const MAX_TURNS: usize = 32;

/// The maximum number of times that a check may look at the same part of a value.
pub(super) const MAX_CHECKS: usize = 10_000;

const ONE: &[&str] = &["not", "if", "then", "else"];
const MANY: &[&str] = &["allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"];
const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];
/// The keywords of which several may apply to one member or item.
const BESIDE: &[&str] = &["propertyNames", "unevaluatedProperties", "contains", "unevaluatedItems"];
/// The keywords of which one applies to a member or item.
const EITHER: &[&str] = &["additionalProperties", "additionalItems", "items", "prefixItems", "properties"];

pub(super) fn admit(local: Local<'_>) -> Result<(), SchemaError> {
    let mut count = Count { local, turns: HashMap::new(), references: 0 };
    let max = count.everywhere(local.root())?;
    // The targets of references are not known here, so each may lead to the next.
    if local.embeds() && max * (count.references + 1) > MAX_TURNS {
        return Err(too_many());
    }
    if checks(local) > MAX_CHECKS {
        return Err(SchemaError::TooWide { limit: MAX_CHECKS });
    }
    Ok(())
}

fn too_many() -> SchemaError {
    SchemaError::TooMany { what: "references and alternatives in a row", limit: MAX_TURNS }
}

struct Count<'a> {
    local: Local<'a>,
    /// Turns by address of the schema; `None` while they are being counted.
    turns: HashMap<usize, Option<usize>>,
    references: usize,
}

impl<'a> Count<'a> {
    /// Returns the maximum number of turns that start at any part of a schema.
    fn everywhere(&mut self, value: &'a Value) -> Result<usize, SchemaError> {
        let mut max = self.from(value, 0)?;
        if let Value::Object(members) = value {
            self.references += REFERENCES.iter().filter(|name| members.contains_key(**name)).count();
        }
        for part in below(value) {
            max = max.max(self.everywhere(part)?);
        }
        Ok(max)
    }

    fn from(&mut self, schema: &'a Value, before: usize) -> Result<usize, SchemaError> {
        let Value::Object(members) = schema else { return Ok(0) };
        let address = std::ptr::from_ref(schema).addr();
        let turns = match self.turns.get(&address) {
            Some(Some(turns)) => *turns,
            Some(None) => return Err(SchemaError::Circular),
            None if before >= MAX_TURNS => return Err(too_many()),
            None => {
                self.turns.insert(address, None);
                let local = self.local;
                let referenced =
                    REFERENCES.iter().filter_map(|name| local.target(members.get(*name)?.as_str()?));
                let one = ONE.iter().filter_map(|name| members.get(*name));
                let many = MANY.iter().filter_map(|name| members.get(*name)).flat_map(below);
                let mut max = 0;
                for next in referenced.chain(one).chain(many) {
                    max = max.max(self.from(next, before + 1)?);
                }
                self.turns.insert(address, Some(max + 1));
                max + 1
            }
        };
        if before + turns > MAX_TURNS { Err(too_many()) } else { Ok(turns) }
    }
}

/// Returns how often a check looks at the same part of a value at most: the product of the alternatives on the way to it.
///
/// A schema that refers to itself further down counts once: the validator remembers what it found there. It is counted without
/// recursion, because a row of definitions may be as long as the schema.
fn checks(local: Local<'_>) -> usize {
    let mut counted: HashMap<usize, usize> = HashMap::new();
    let mut open = vec![(local.root(), false)];
    while let Some((schema, is_entered)) = open.pop() {
        let Value::Object(members) = schema else { continue };
        let address = std::ptr::from_ref(schema).addr();
        let (all, either) = applied(local, members);
        if !is_entered {
            if counted.contains_key(&address) {
                continue;
            }
            counted.insert(address, 1);
            open.push((schema, true));
            open.extend(all.into_iter().chain(either).map(|next| (next, false)));
            continue;
        }
        let of = |next: &Value| counted.get(&std::ptr::from_ref(next).addr()).copied().unwrap_or(1);
        let all = all.into_iter().map(of).fold(1, usize::saturating_add);
        let either = either.into_iter().map(of).max().unwrap_or_default();
        counted.insert(address, all.saturating_add(either));
    }
    counted.get(&std::ptr::from_ref(local.root()).addr()).copied().unwrap_or(1)
}

/// Returns the schemas that a schema applies: those of which several may meet at one part of a value, and those that exclude each other.
fn applied<'a>(local: Local<'a>, members: &'a Map<String, Value>) -> (Vec<&'a Value>, Vec<&'a Value>) {
    let several = |names: &'static [&str]| names.iter().filter_map(|name| members.get(*name));
    let referenced = several(REFERENCES).filter_map(|reference| local.target(reference.as_str()?));
    let patterns = members.get("patternProperties").into_iter();
    let all = referenced
        .chain(several(ONE))
        .chain(several(BESIDE))
        .chain(several(MANY).chain(patterns).flat_map(below))
        .collect();
    let either = several(EITHER).flat_map(|part| match part {
        Value::Object(_) if !members.get("properties").is_some_and(|own| std::ptr::eq(own, part)) => {
            vec![part]
        }
        part => below(part).collect(),
    });
    (all, either.collect())
}
