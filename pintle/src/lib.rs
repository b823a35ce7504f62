//! A Model Context Protocol SDK: servers and clients of every revision, one way to write them.
//!
//! ```no_run
//! # #[cfg(all(feature = "macros", feature = "stdio"))]
//! # mod shown {
//! /// Add two integers.
//! #[pintle::tool]
//! async fn add(a: i64, b: i64) -> i64 {
//!     a + b
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> pintle::Result<()> {
//!     pintle::Server::new("adder", "1.0.0").tools(pintle::tools![add]).serve_stdio().await
//! }
//! # }
//! ```
//!
//! # I want to …
//!
//! | write a server: | |
//! |---|---|
//! | make a tool of a function | [`#[tool]`](macro@tool), or [`server::tool`] without an attribute |
//! | make tools, prompts and resources of the methods of a type | [`#[handlers]`](macro@handlers) |
//! | give the handlers something of my own | [`server::State`] |
//! | return structure, and its schema | [`server::Json`] |
//! | return pictures, sounds, links | [`content`] |
//! | say more of an argument than its type does | `#[arg(..)]` of [`#[tool]`](macro@tool), [`server::SchemaPart`] |
//! | tell the model what went wrong | [`server::ToolError`] |
//! | say how far a call is | [`Cx::progress`](server::Cx::progress) |
//! | ask the user | [`Cx::elicit`](server::Cx::elicit), [`Cx::elicit_url`](server::Cx::elicit_url) |
//! | ask the client's model | [`Cx::sample`](server::Cx::sample) |
//! | do something once, although the handler runs again | [`Cx::once`](server::Cx::once) |
//! | offer something to read | [`#[resource]`](macro@resource), [`directory::Directory`], [`server::ResourceSource`] |
//! | offer prompts | [`#[prompt]`](macro@prompt), or [`server::prompt`] |
//! | change all this while it runs | [`Server::add_tool`], [`Server::remove_tool`], .. |
//! | say who sees what | [`Server::filter`] |
//! | put something around every call | [`server::around`], [`Server::layer`] |
//! | send my logs to the client | [`logging::layer`](mod@logging) |
//! | bound what clients can do | [`proto::Limits`], [`Timeouts`] |
//! | run it | [`Server::serve_stdio`], `Server::serve_http` (feature `http-server`), [`Server::serve`] |
//! | test it | [`testing`] |
//!
//! | write a client: | |
//! |---|---|
//! | start a server and talk to it | [`Client::connect`], [`transport::Child`] |
//! | talk to a server at a URL | `client::http::Http` (feature `http-client`) |
//! | call a tool | [`Connection::call_tool`], [`Connection::call_tool_as`], [`Connection::call`] |
//! | list, read, complete | [`Connection::tools`], [`Connection::read_resource`], [`Connection::complete`] |
//! | answer what servers ask | [`Client::on_elicit`], [`Client::on_sample`], [`Client::roots`] |
//! | decide what may be called | [`client::Policy`] |
//! | hear of changes | [`Connection::changes`], [`Connection::subscribe`] |
//! | use several servers as one | [`client::Group`] |
//! | understand an error | [`Error`] |
//!
//! | anything else: | |
//! |---|---|
//! | bring a transport of my own | [`transport::channels`], [`transport::Transport`], [`transport::kit`] |
//! | see what passes over a connection | [`transport::Record`] |
//! | match and make URIs | [`uri`] |
//! | check values against JSON Schema | [`schema`] |
//! | the nouns of the protocol | [`types`] |
//! | the protocol without tokio | [`proto`] |
//!
//! The repository has a guide, with a page for each of tools, resources, prompts, asking, running, testing, errors, clients
//! and coming from another SDK, in `docs/`, and programs to copy from in `pintle/examples/`.
//!
//! # Features
//!
//! | feature | adds | by default |
//! |---|---|---|
//! | `server` | servers | yes |
//! | `client` | clients | yes |
//! | `macros` | the attributes | yes |
//! | `stdio` | serving the process's own standard streams | yes |
//! | `child` | servers that are child processes | yes |
//! | `logging` | `tracing` events as log messages to clients | yes |
//! | `validation` | arguments and results checked against their schemas | yes |
//! | `net` | TCP and Unix sockets | no |
//! | `http-server` | servers over HTTP, as a `tower` service or by themselves | no |
//! | `http2` | HTTP/2 for them | no |
//! | `http-client` | clients of servers at a URL | no |
//! | `tls` | `https` for them | no |
//!
//! A program needs `tokio` with `rt` and `macros`, and `serde` and `schemars` for types of its own.

#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private;
#[cfg(feature = "client")]
pub mod client;
#[cfg(any(feature = "client", feature = "server"))]
pub mod content;
#[cfg(feature = "server")]
pub mod directory;
mod ended;
mod error;
#[cfg(feature = "client")]
mod excerpt;
#[cfg(all(
    doctest,
    feature = "child",
    feature = "http-client",
    feature = "http-server",
    feature = "logging",
    feature = "macros",
    feature = "stdio"
))]
mod guide;
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
