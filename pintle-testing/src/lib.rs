//! Tests of servers, clients, transports and stores that are written with [`pintle`].
//!
//! A test of a server in both eras, in its process and without a port:
//!
//! ```
//! use pintle::{Server, server::tool};
//! use pintle_testing::TestClient;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let server = Server::new("demo", "1.0.0").tool(tool("hello", || async { "hello" }));
//! TestClient::new().both_eras(&server, async |client| {
//!     assert_eq!(client.tool("hello", ()).await.text(), "hello");
//! }).await;
//! # }
//! ```
//!
//! | to test | item |
//! |---|---|
//! | a server | [`TestClient`]: it has scripted answers to input requests, and fails the test on any other |
//! | a call | [`Called`]: the result, the notifications and the input requests |
//! | what a server offers | [`CatalogueSnapshot`], to be compared with a file |
//! | a client or a transport, message by message | [`Peer`] |
//! | a transport or a store that you wrote | the [`kits`] |
//!
//! Failures panic. Only tests need this crate: name it in `[dev-dependencies]`.

mod called;
mod catalogue;
mod client;
mod connection;
mod diff;
pub mod kits;
mod peer;
mod print;
mod script;

pub use called::Called;
pub use catalogue::CatalogueSnapshot;
pub use client::{MakeServer, TestClient};
pub use connection::TestConnection;
pub use peer::Peer;
