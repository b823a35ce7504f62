//! A Model Context Protocol SDK: servers and clients of every revision, one way to write them.

pub mod transport;

pub use pintle_proto as proto;
pub use pintle_types as types;
