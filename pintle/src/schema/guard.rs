//! Limits on the size of a schema, checked before it is compiled.

use std::io;

use serde_json::Value;

use super::{SchemaError, words::json};

const MAX_BYTES: usize = 1024 * 1024;
const MAX_LEVELS: usize = 100;
const MAX_SUBSCHEMAS: usize = 10_000;
/// The maximum number of patterns. Each may take half a MiB when compiled.
const MAX_PATTERNS: usize = 128;

pub(super) fn admit(schema: &Value) -> Result<(), SchemaError> {
    if !schema.is_object() && !schema.is_boolean() {
        return Err(SchemaError::NotASchema { got: json(schema) });
    }
    // Levels first: the other checks are then safe to recurse.
    let mut tally = Tally::default();
    tally.look(schema, 1)?;
    serde_json::to_writer(ByteLimit(MAX_BYTES), schema)
        .map_err(|_| SchemaError::TooLarge { limit: MAX_BYTES })
}

#[derive(Default)]
struct Tally {
    objects: usize,
    patterns: usize,
}

impl Tally {
    fn look(&mut self, value: &Value, level: usize) -> Result<(), SchemaError> {
        if level > MAX_LEVELS {
            return Err(SchemaError::TooDeep { limit: MAX_LEVELS });
        }
        match value {
            Value::Object(members) => {
                self.objects += 1;
                let patterned = members.get("patternProperties").and_then(Value::as_object);
                self.patterns += usize::from(members.get("pattern").is_some_and(Value::is_string));
                self.patterns += patterned.map_or(0, serde_json::Map::len);
                if self.objects > MAX_SUBSCHEMAS {
                    return Err(SchemaError::TooMany { what: "subschemas", limit: MAX_SUBSCHEMAS });
                }
                if self.patterns > MAX_PATTERNS {
                    return Err(SchemaError::TooMany { what: "patterns", limit: MAX_PATTERNS });
                }
                members.values().try_for_each(|member| self.look(member, level + 1))
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.look(item, level + 1)),
            _ => Ok(()),
        }
    }
}

/// A writer that counts bytes, discards them, and fails at a limit.
struct ByteLimit(usize);

impl io::Write for ByteLimit {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
