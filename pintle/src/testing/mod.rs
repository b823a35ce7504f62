//! Help for tests: a client that plays a script, the catalogue as text, and the other side played by hand.
//!
//! A test of a server, once with a session and once without one:
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
//! [`TestClient`] answers what the server asks, and fails the test if it asks anything else; [`Called`] holds what was
//! said during a call. [`Catalogue`] is what a server offers, to be compared with a file. [`Peer`] is for those who write
//! clients or transports: it says what it is told to, word by word.
//!
//! What goes wrong panics: that is the test failing.

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
pub use catalogue::Catalogue;
#[cfg(all(feature = "client", feature = "server"))]
pub use client::TestClient;
#[cfg(all(feature = "client", feature = "server"))]
pub use connection::TestConnection;
pub use peer::Peer;
