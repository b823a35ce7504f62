//! The Model Context Protocol as state machines. No I/O, no clock, no randomness: messages in, decisions out.
//!
//! This is the only crate that knows that more than one protocol revision exists.

mod change;
pub mod client;
mod facts;
pub mod http;
pub mod inputs;
pub mod ledger;
mod limits;
mod peer;
mod revision;
pub mod server;
mod shown;
pub mod sse;
mod stamp;
mod text;
mod violation;

pub use change::Change;
pub use facts::{Facts, TaskKind};
pub use limits::{Limits, RETRY_AFTER_MS};
pub use peer::Peer;
pub use revision::{Part, Revision, UnknownRevision, Unsayable};
pub(crate) use stamp::Stamp;
pub use violation::Violation;
