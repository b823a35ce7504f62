//! The types from the outside: laws that hold for every text, and the specification's examples and schema.

mod laws;
mod properties;
mod samples;
mod spec;
