//! The client's side: how to open, how to dress a request, what a message from the server means.
//!
//! ```text
//! Opening  what to send until the server's era and revision are known      (once a connection)
//! Engine   requests out, messages in, who waits for what                   (as long as the connection lives)
//! Rounds   what to send when the server asks before it answers             (once a call)
//! Cache    what need not be asked again                                    (as long as one likes)
//! ```
//!
//! Nothing here reads, writes, waits or looks at a clock.

mod cache;
mod capabilities;
mod engine;
mod extras;
mod flights;
mod inbound;
mod open_error;
mod opening;
mod own_ids;
mod profile;
mod reading;
mod receive;
mod retry;
mod send_error;
mod session;
mod shapes;
mod stateless;
mod subscriptions;
#[cfg(test)]
mod testing;

pub use cache::{Cache, Ticket};
pub use engine::{Engine, Lost};
pub use extras::Extras;
pub use inbound::{End, Ignored, Inbound, Question};
pub use open_error::OpenError;
pub use opening::{Event, Mode, Opened, Opening, Step, Verdict};
pub use own_ids::{OwnIdHasher, OwnIds};
pub use profile::Profile;
pub use reading::{InputRequest, InputRequired, Outcome, Reading};
pub use retry::{RetryError, Round, Rounds};
pub use send_error::SendError;

pub use crate::Change;
