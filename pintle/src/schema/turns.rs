//! How often a schema hands a value on before it looks into it.
//!
//! Each turn is stack, for each level of a value. A value read from text has at most 128 levels, so a bound on turns is a
//! bound on the stack.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    SchemaError,
    local::{Local, below},
};

/// With 128 levels this fits twice into the 2 MiB that a thread has, in an unoptimized build.
pub(super) const MOST: usize = 32;

const ONE: &[&str] = &["not", "if", "then", "else"];
const MANY: &[&str] = &["allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"];
const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

pub(super) fn admit(local: Local<'_>) -> Result<(), SchemaError> {
    let mut count = Count { local, turns: HashMap::new(), references: 0 };
    let most = count.everywhere(local.root())?;
    // Where references lead is not known here, so each may lead to the next.
    if local.embeds() && most * (count.references + 1) > MOST {
        return Err(too_many());
    }
    Ok(())
}

fn too_many() -> SchemaError {
    SchemaError::TooMany { what: "references and alternatives in a row", most: MOST }
}

struct Count<'a> {
    local: Local<'a>,
    /// By address, from there on; nothing while it is being counted.
    turns: HashMap<usize, Option<usize>>,
    references: usize,
}

impl<'a> Count<'a> {
    /// The most turns from any part of a schema on.
    fn everywhere(&mut self, value: &'a Value) -> Result<usize, SchemaError> {
        let mut most = self.from(value, 0)?;
        if let Value::Object(members) = value {
            self.references += REFERENCES.iter().filter(|name| members.contains_key(**name)).count();
        }
        for part in below(value) {
            most = most.max(self.everywhere(part)?);
        }
        Ok(most)
    }

    fn from(&mut self, schema: &'a Value, before: usize) -> Result<usize, SchemaError> {
        let Value::Object(members) = schema else { return Ok(0) };
        let address = std::ptr::from_ref(schema).addr();
        let turns = match self.turns.get(&address) {
            Some(Some(turns)) => *turns,
            Some(None) => return Err(SchemaError::Circular),
            None if before >= MOST => return Err(too_many()),
            None => {
                self.turns.insert(address, None);
                let local = self.local;
                let referenced =
                    REFERENCES.iter().filter_map(|name| local.target(members.get(*name)?.as_str()?));
                let one = ONE.iter().filter_map(|name| members.get(*name));
                let many = MANY.iter().filter_map(|name| members.get(*name)).flat_map(below);
                let mut most = 0;
                for next in referenced.chain(one).chain(many) {
                    most = most.max(self.from(next, before + 1)?);
                }
                self.turns.insert(address, Some(most + 1));
                most + 1
            }
        };
        if before + turns > MOST { Err(too_many()) } else { Ok(turns) }
    }
}
