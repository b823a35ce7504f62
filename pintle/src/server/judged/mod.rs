//! Arguments as rules and gates read them: with one reading, in the types of their schema, and with the changes of the way.

mod argument_schema;
pub(crate) mod arguments;
pub(crate) mod unique_json;
