//! Whole conversations with the engines, as a peer would see them.

#![allow(clippy::unwrap_used, reason = "all of it is test, helpers too")]

mod demo;
mod fields;
mod pattern;
mod replies;
mod script;
mod seal;
mod sizes;
mod stream;
mod transcripts;
