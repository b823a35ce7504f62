//! Help for tests: the other side of a connection, played by hand.

mod peer;

pub use peer::Peer;
