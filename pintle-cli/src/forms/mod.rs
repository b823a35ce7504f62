//! Questions of servers: answered with what was given, by the user in a form, or stored with the call for later.

mod answerer;
mod asked;
mod field;
mod fill_in;
mod form;
mod given;
mod missing_option;
mod page;
mod questions;
mod sampling;

pub(crate) use questions::{Questions, Typed};
