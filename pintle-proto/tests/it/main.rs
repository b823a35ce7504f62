//! Whole conversations with the engines, as a peer would see them.

#![allow(clippy::unwrap_used, reason = "all of it is test, helpers too")]

mod any_order;
#[path = "../support/asking.rs"]
mod asking;
mod calls;
#[path = "../support/conversation/mod.rs"]
mod conversation;
mod demo;
mod effect;
mod engine;
mod extensions;
mod fields;
mod head;
mod late_discovery;
mod opening;
mod pair;
mod pattern;
mod properties;
mod replies;
mod revision;
mod script;
mod seal;
mod sizes;
mod stream;
mod transcripts;
