//! Schemas of a document as JSON Schema 2020-12, for tools.
//!
//! Only keywords that JSON Schema knows come through, and only with values that it allows: one invalid schema in a list makes hosts
//! refuse all tools. References become `$defs`, so that cycles stay cycles and the text does not grow.

mod inline;
mod keyword;
mod visibility;
mod writer;

pub(crate) use visibility::is_hidden;
pub(crate) use writer::{Direction, SchemaWriter, WrittenSchema};
