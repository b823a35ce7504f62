//! Help for tests: the other side of a connection, played by hand; and every revision, tried in turn.

#[cfg(all(feature = "client", feature = "server"))]
mod eras;
mod peer;

#[cfg(all(feature = "client", feature = "server"))]
pub use eras::{both_eras, both_eras_as};
pub use peer::Peer;
