//! What a schema may cost before it is looked at.

use std::io;

use serde_json::Value;

use super::{SchemaError, words::json};

const MOST_BYTES: usize = 1024 * 1024;
const MOST_LEVELS: usize = 100;
const MOST_SUBSCHEMAS: usize = 10_000;
/// Each may take half a MiB when compiled.
const MOST_PATTERNS: usize = 128;

pub(super) fn admit(schema: &Value) -> Result<(), SchemaError> {
    if !schema.is_object() && !schema.is_boolean() {
        return Err(SchemaError::NotASchema { got: json(schema) });
    }
    // Levels first: the other looks may then go down by calling themselves.
    let mut tally = Tally::default();
    tally.look(schema, 1)?;
    serde_json::to_writer(Room(MOST_BYTES), schema).map_err(|_| SchemaError::TooLarge { most: MOST_BYTES })
}

#[derive(Default)]
struct Tally {
    objects: usize,
    patterns: usize,
}

impl Tally {
    fn look(&mut self, value: &Value, level: usize) -> Result<(), SchemaError> {
        if level > MOST_LEVELS {
            return Err(SchemaError::TooDeep { most: MOST_LEVELS });
        }
        match value {
            Value::Object(members) => {
                self.objects += 1;
                let patterned = members.get("patternProperties").and_then(Value::as_object);
                self.patterns += usize::from(members.get("pattern").is_some_and(Value::is_string));
                self.patterns += patterned.map_or(0, serde_json::Map::len);
                if self.objects > MOST_SUBSCHEMAS {
                    return Err(SchemaError::TooMany { what: "subschemas", most: MOST_SUBSCHEMAS });
                }
                if self.patterns > MOST_PATTERNS {
                    return Err(SchemaError::TooMany { what: "patterns", most: MOST_PATTERNS });
                }
                members.values().try_for_each(|member| self.look(member, level + 1))
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.look(item, level + 1)),
            _ => Ok(()),
        }
    }
}

/// Counts what is written and keeps nothing of it.
struct Room(usize);

impl io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
