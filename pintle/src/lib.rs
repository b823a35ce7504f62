//! A Model Context Protocol SDK: servers and clients of every revision, one way to write them.

#[cfg(feature = "server")]
pub mod directory;
mod error;
#[cfg(feature = "validation")]
pub mod schema;
#[cfg(feature = "server")]
pub mod server;
mod tool_query;
mod tool_traits;
pub mod transport;
pub mod uri;

pub use error::{Error, Result};
#[cfg(feature = "server")]
pub use server::Server;
#[cfg(feature = "logging")]
pub use server::logging;
pub use tool_query::{AboutTools, ToolQuery};
pub use tool_traits::ToolTraits;

pub use pintle_proto as proto;
pub use pintle_types as types;
