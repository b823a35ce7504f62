//! Payloads in the shapes of every revision, held against the published schemas.

mod lowering;
mod schema;
mod typed;
