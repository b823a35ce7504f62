//! Test utilities: a scripted client, a snapshot of the catalogue, and a manually driven peer.
//!
//! A test of a server in both eras:
//!
//! ```
//! # #[cfg(all(feature = "client", feature = "server"))] {
//! use pintle::{Server, server::tool, testing::TestClient};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let server = Server::new("demo", "1.0.0").tool(tool("hello", || async { "hello" }));
//! TestClient::new().both_eras(&server, async |client| {
//!     assert_eq!(client.tool("hello", ()).await.text(), "hello");
//! }).await;
//! # }
//! # main();
//! # }
//! ```
//!
//! [`TestClient`] has scripted answers to input requests, and fails the test on any other. [`Called`] holds the result, the
//! notifications and the input requests of a call. [`CatalogueSnapshot`] is what a server offers, to be compared with a file.
//! [`Peer`] sends and receives single messages, for tests of clients and transports.
//!
//! Failures panic.

#[cfg(all(feature = "client", feature = "server"))]
mod called;
#[cfg(all(feature = "client", feature = "server"))]
mod catalogue;
#[cfg(all(feature = "client", feature = "server"))]
mod client;
#[cfg(all(feature = "client", feature = "server"))]
mod connection;
#[cfg(all(feature = "client", feature = "server"))]
mod diff;
mod peer;
#[cfg(all(feature = "client", feature = "server"))]
mod print;
#[cfg(all(feature = "client", feature = "server"))]
mod script;

#[cfg(all(feature = "client", feature = "server"))]
pub use called::Called;
#[cfg(all(feature = "client", feature = "server"))]
pub use catalogue::CatalogueSnapshot;
#[cfg(all(feature = "client", feature = "server"))]
pub use client::{MakeServer, TestClient};
#[cfg(all(feature = "client", feature = "server"))]
pub use connection::TestConnection;
pub use peer::Peer;
