//! A Model Context Protocol SDK: servers and clients of every revision, one way to write them.

#[cfg(feature = "server")]
pub mod directory;
pub mod transport;
pub mod uri;

pub use pintle_proto as proto;
pub use pintle_types as types;
