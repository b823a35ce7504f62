//! Conversations with the whole thing: one binary, a module for each subject.

#![expect(clippy::unwrap_used, reason = "a test says what it means")]

mod client_calls;
mod client_opening;
mod client_questions;
mod client_world;
