//! The attribute macros.

#[cfg(feature = "macros")]
mod blocking;
#[cfg(feature = "macros")]
mod compile_errors;
#[cfg(feature = "macros")]
mod handlers;
#[cfg(feature = "macros")]
mod prompt;
#[cfg(feature = "macros")]
mod resource;
#[cfg(feature = "macros")]
mod schema;
#[cfg(feature = "macros")]
mod tool;
