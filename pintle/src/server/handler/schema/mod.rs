//! Schemas of arguments and results, made from types and edited in parts.

pub(crate) mod part;
pub(crate) mod type_schema;
