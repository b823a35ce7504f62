//! A Model Context Protocol SDK: servers and clients for every revision of the protocol, with one API.
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
//! # Where to start
//!
//! | server task | item |
//! |---|---|
//! | define a tool as a function | [`#[tool]`](macro@tool), or [`server::tool`] without an attribute |
//! | define tools, prompts and resources as methods of a type | [`#[handlers]`](macro@handlers) |
//! | share state with handlers | [`server::State`] |
//! | return structured content with its schema | [`server::Json`] |
//! | return images, audio, links | [`content`] |
//! | refine the schema of an argument | `#[arg(..)]` of [`#[tool]`](macro@tool), [`server::SchemaPart`] |
//! | return an error to the model | [`server::ToolError`] |
//! | report progress | [`Cx::progress`](server::Cx::progress) |
//! | ask the user | [`Cx::elicit`](server::Cx::elicit), [`Cx::elicit_url`](server::Cx::elicit_url) |
//! | ask the client's model | [`Cx::sample`](server::Cx::sample) |
//! | run a side effect once although the handler runs again | [`Cx::once`](server::Cx::once) |
//! | offer resources | [`#[resource]`](macro@resource), [`directory::Directory`], [`server::ResourceSource`] |
//! | offer prompts | [`#[prompt]`](macro@prompt), or [`server::prompt`] |
//! | change the catalogue at run time | [`Server::add_tool`], [`Server::remove_tool`], .. |
//! | hide entries from some callers | [`Server::filter`] |
//! | add middleware | [`server::around`], [`Server::layer`] |
//! | send logs to the client | [`logging::layer`](mod@logging) |
//! | set limits and timeouts | [`proto::Limits`], [`Timeouts`] |
//! | serve | [`Server::serve_stdio`], [`Server::run`] for stdio or HTTP by a flag, `Server::serve_http`, [`Server::serve`] |
//! | test a server | the crate `pintle-testing` |
//!
//! | client task | item |
//! |---|---|
//! | start a server and connect to it | [`Client::connect`], [`transport::Child`] |
//! | connect to a server at a URL | `client::http::Http` (feature `http-client`) |
//! | call a tool | [`Connection::call_tool`], [`Connection::call_tool_as`], [`Connection::call`] |
//! | list, read, complete | [`Connection::tools`], [`Connection::read_resource`], [`Connection::complete`] |
//! | answer requests from servers | [`Client::on_elicit`], [`Client::on_sample`], [`Client::roots`] |
//! | set a call policy | [`client::Policy`] |
//! | receive changes | [`Connection::changes`], [`Connection::subscribe`] |
//! | use several servers as one | `Group` of the crate `pintle-host` |
//! | handle errors | [`Error`] |
//!
//! | other task | item |
//! |---|---|
//! | offer what another server offers | `Relay` of the crate `pintle-relay` |
//! | write a transport | [`transport::channels`], [`transport::Transport`], the kits of the crate `pintle-testing` |
//! | log all messages | [`message_log::MessageLog`], `Server::message_log`, `Client::message_log` |
//! | match and expand URI templates | [`uri`] |
//! | validate values with JSON Schema | [`schema`] |
//! | use the message types of the protocol | [`types`] |
//! | use the protocol without tokio | [`proto`] |
//!
//! The repository has a guide in `docs/`, with pages on tools, resources, prompts, input requests, running, testing, errors,
//! clients and migrating from other SDKs, and example programs in `pintle/examples/`.
//!
//! # Names that exist twice
//!
//! Servers and clients have the same words for the same things. Import the module where a program needs both:
//! `use pintle::{client, server};`.
//!
//! | name | of servers | of clients | elsewhere |
//! |---|---|---|---|
//! | `Cx`, `Next`, `around` | [`server::Cx`]: a call, for its handler and for layers of the server | [`client::Cx`]: a message, for layers of the client | |
//! | `Http` | `server::http::Http`: a `tower` service (feature `http-server`) | `client::http::Http`: a transport (feature `http-client`) | |
//! | `Direction` | | [`client::Direction`], the same type | [`message_log::Direction`]: that of a message |
//! | `Target` | [`server::Target`]: the entry that a request is about | [`client::Target`], the same type | `types::method::Target`: the kind of an entry, a column of the methods |
//! | `Principal` | [`server::Principal`]: whose call it is, on any transport | | `pintle_oauth::server::Principal`: the claims of an access token, which a handler takes as a parameter |
//! | `Access`, `Scope` | [`server::Access`]: a use of an entry that a gate decides about, [`server::Scope`]: the caller | | |
//! | `Field` | [`server::Field`]: of a form that a user fills in | | |
//! | `Event` | `server::http::log::Event`: a stored event of a stream | [`client::Event`]: an event on a connection | |
//! | `Body` | `server::http::Body`: that of a response | `client::http::Body`: that of a request | |
//! | `Limits` | [`proto::Limits`]: of a server | `client::http::Limits`: of a transport | |
//! | `Vars` | [`server::Vars`]: the variables of a template, as a type | | [`uri::Vars`]: as texts |
//! | `Args`, `Arguments`, `PromptArguments` | [`server::Args`]: arguments as a type, [`server::Arguments`]: as JSON, [`server::PromptArguments`]: as texts | | |
//!
//! # Features
//!
//! | feature | adds | by default |
//! |---|---|---|
//! | `server` | servers | yes |
//! | `macros` | the attributes | yes |
//! | `stdio` | serving the process's own standard streams | yes |
//! | `validation` | validation of arguments and results against their schemas | yes |
//! | `logging` | `tracing` events as log messages to clients | no |
//! | `client` | clients | no |
//! | `child` | servers that are child processes, for clients | no |
//! | `net` | TCP and Unix sockets | no |
//! | `http-server` | servers over HTTP, as a `tower` service or standalone | no |
//! | `http2` | HTTP/2 for HTTP servers | no |
//! | `http-client` | clients of servers at a URL | no |
//! | `tls` | `https` for HTTP clients | no |
//! | `next-revision` | a revision that does not exist, for tests of how one is added; not stable | no |
//!
//! A client that starts its servers needs `client` and `child`, and none of the default features. A program needs `tokio` with
//! `rt` and `macros`, and `serde` and `schemars` for its own types.

#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private;
#[cfg(feature = "client")]
pub mod client;
#[cfg(any(feature = "client", feature = "server"))]
pub mod content;
#[cfg(feature = "server")]
pub mod directory;
mod error;
#[cfg(any(feature = "client", feature = "server"))]
mod excerpt;
pub mod forward;
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
#[cfg(any(feature = "client", feature = "server"))]
pub mod layer;
#[cfg(any(feature = "client", feature = "server"))]
mod lock;
pub mod message_log;
pub mod proto;
mod question_keys;
#[cfg(any(feature = "child", feature = "client", feature = "server"))]
mod runtime;
#[cfg(feature = "validation")]
pub mod schema;
#[cfg(feature = "server")]
pub mod server;
#[cfg(any(feature = "client", feature = "server"))]
mod suggestion;
#[cfg(feature = "client")]
mod suspended_call;
/// The locks and atomics of hand-written wakers: those of the standard library here, those of loom in `loom/`.
#[cfg(feature = "client")]
mod sync {
    pub(crate) use std::sync::Mutex;
    #[cfg(feature = "http-client")]
    pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
}
#[cfg(any(feature = "client", feature = "server"))]
mod target;
#[cfg(any(feature = "client", feature = "server"))]
mod telemetry;
mod timeouts;
mod tool_query;
mod tool_traits;
pub mod transport;
pub mod types;
pub mod uri;

#[cfg(feature = "logging")]
pub use crate::server::core::cx::logging;
#[cfg(feature = "client")]
pub use client::{Client, Connection};
pub use error::{Error, Result};
#[cfg(feature = "macros")]
pub use pintle_macros::{handlers, prompt, resource, routes, tool, tools};
#[cfg(feature = "server")]
pub use server::Server;
#[cfg(any(feature = "client", feature = "server"))]
pub use suggestion::Suggestion;
pub use timeouts::Timeouts;
pub use tool_query::{ToolPredicate, ToolQuery};
pub use tool_traits::ToolTraits;
pub use transport::ended::Ended;
