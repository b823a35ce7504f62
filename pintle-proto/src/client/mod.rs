//! The client's side of the protocol: opening a connection, sending requests, interpreting messages from the server.
//!
//! ```text
//! Opening  determines the server's era and revision                      (once per connection)
//! Engine   sends requests, receives messages, tracks what is in flight   (for the life of a connection)
//! Rounds   answers the questions that a server asks before its result    (once per call)
//! Cache    keeps results that may be reused                              (for as long as you like)
//! ```
//!
//! Nothing here does I/O, waits or reads a clock.

mod cache;
mod capabilities;
mod engine;
mod extras;
mod flights;
mod inbound;
mod open_error;
mod opening;
mod profile;
mod reading;
mod receive;
mod request_meta;
mod retry;
mod send_error;
mod session;
mod shapes;
mod stateless;
mod subscriptions;
#[cfg(test)]
mod testing;

pub use cache::{Cache, CacheTicket};
pub use engine::{Engine, Lost};
pub use extras::Extras;
pub use inbound::{End, Ignored, Inbound, ServerQuestion};
pub use open_error::OpenError;
pub use opening::{Mode, Opened, Opening, OpeningEvent, OpeningStep, Verdict};
pub use profile::Profile;
pub use reading::{InputRequest, InputRequired, Reading, RequestOutcome};
pub use retry::{RetryError, Round, Rounds};
pub use send_error::SendError;

pub use crate::Change;
