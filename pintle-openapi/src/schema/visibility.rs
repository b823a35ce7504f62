//! Which properties a direction has: what only the API writes is in no input, what only callers write in no output.

use std::collections::HashSet;

use super::writer::Direction;
use crate::document::Node;

/// How many parts of `allOf` are looked into for the names that another part requires.
const MAX_PARTS: usize = 64;

/// Returns whether a property is left out.
pub(crate) fn is_hidden(property: Node<'_>, direction: Direction) -> bool {
    let flag = match direction {
        Direction::Input => "readOnly",
        Direction::Output => "writeOnly",
    };
    let own = property.flag(flag);
    own.or_else(|| property.resolve().ok()?.flag(flag)).unwrap_or(false)
}

/// Adds the names of the properties of a schema, and of the parts of its `allOf`, that are left out.
pub(super) fn hidden<'a>(schema: Node<'a>, direction: Direction, names: &mut HashSet<&'a str>) {
    let mut parts = vec![schema];
    let mut next = 0;
    while let Some(schema) = parts.get(next).copied() {
        next += 1;
        for (name, property) in schema.members_of("properties") {
            if is_hidden(property, direction) {
                names.insert(name);
            }
        }
        let left = MAX_PARTS.saturating_sub(parts.len());
        parts.extend(schema.items_of("allOf").filter_map(|part| part.resolve().ok()).take(left));
    }
}
