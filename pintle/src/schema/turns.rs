//! A limit on the references and alternatives ("turns") that apply to the same value.
//!
//! Each turn uses stack, for each level of a value. A value parsed from text has at most 128 levels, so a limit on turns
//! limits the stack.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    SchemaError,
    local::{Local, below},
};

/// The maximum number of turns. With 128 levels it needs half of a thread's 2 MiB of stack in an unoptimized build.
pub(super) const MAX_TURNS: usize = 32;

const ONE: &[&str] = &["not", "if", "then", "else"];
const MANY: &[&str] = &["allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"];
const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

pub(super) fn admit(local: Local<'_>) -> Result<(), SchemaError> {
    let mut count = Count { local, turns: HashMap::new(), references: 0 };
    let max = count.everywhere(local.root())?;
    // The targets of references are not known here, so each may lead to the next.
    if local.embeds() && max * (count.references + 1) > MAX_TURNS {
        return Err(too_many());
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
