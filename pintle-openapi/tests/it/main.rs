//! One binary for all integration tests; a file that is not named here fails `cargo xtask tidy`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "clippy's exemption for tests does not reach their helpers"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "documents are literals, which are written where they are passed"
)]

mod answers;
mod documents;
mod examples;
mod fields;
mod hostile;
mod oauth;
mod packages;
mod pages;
mod requests;
mod resources;
mod rules;
mod schemas;
mod style_matrix;
mod styles;
mod support;
