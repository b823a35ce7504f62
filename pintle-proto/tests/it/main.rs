//! Whole conversations with the engines, as a peer would see them.

mod demo;
mod pattern;
mod replies;
mod script;
mod seal;
mod sizes;
mod stream;
mod transcripts;
