//! Content for results, prompts and resources: pictures, sounds, links and embedded resources.
//!
//! Text needs no help: it is a `String`. The others check what they are given, so that a mistake is an error where it is
//! made and not a picture that nobody can see.

mod embedded;
mod error;
mod format;
mod link;
mod media;
#[cfg(feature = "server")]
mod results;

pub use embedded::Embedded;
pub use error::ContentError;
pub use link::Link;
pub use media::{Audio, Image, MAX_BYTES};
