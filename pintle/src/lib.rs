//! A Model Context Protocol SDK: servers and clients of every revision, one way to write them.

#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
pub mod directory;
mod ended;
mod error;
#[cfg(all(
    doctest,
    feature = "child",
    feature = "client",
    feature = "logging",
    feature = "macros",
    feature = "stdio"
))]
mod guide;
mod near;
#[cfg(feature = "validation")]
pub mod schema;
#[cfg(feature = "server")]
pub mod server;
pub mod testing;
mod timeouts;
mod tool_query;
mod tool_traits;
pub mod transport;
pub mod uri;

#[cfg(feature = "client")]
pub use client::{Client, Connection};
pub use ended::Ended;
pub use error::{Error, Result};
#[cfg(feature = "macros")]
pub use pintle_macros::{handlers, prompt, resource, tool};
pub use pintle_proto as proto;
pub use pintle_types as types;
#[cfg(feature = "server")]
pub use server::Server;
#[cfg(feature = "logging")]
pub use server::logging;
pub use timeouts::Timeouts;
pub use tool_query::{AboutTools, ToolQuery};
pub use tool_traits::ToolTraits;
