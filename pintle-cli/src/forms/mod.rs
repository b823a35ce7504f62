//! Questions of servers to the user.
//!
//! They are not answered yet: a verb that is asked ends with the exit code `needs-input` and prints the question.

mod asked;
mod questions;

pub(crate) use questions::Questions;
