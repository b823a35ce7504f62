//! Tests of the crate as its users see it.

mod config;
mod example;
mod group;
