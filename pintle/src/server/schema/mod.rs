//! Schemas of arguments and results, generated from types and edited in parts.

pub(crate) mod part;
pub(crate) mod read_error;
pub(crate) mod type_schema;
pub(crate) mod validation;
