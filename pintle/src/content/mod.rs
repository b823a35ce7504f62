//! Content of results, prompts and resources: images, audio, links and embedded resources.
//!
//! Text is a plain `String`. The other types validate their data on construction, so that a mistake is reported where it is
//! made and not by a host that cannot show the image.

mod audio;
mod embedded;
mod error;
mod format;
mod link;
mod media;
#[cfg(feature = "server")]
mod results;

pub use audio::AudioProperties;
pub use embedded::Embedded;
pub use error::ContentError;
pub use link::Link;
pub use media::{Audio, Image, MAX_BYTES};
