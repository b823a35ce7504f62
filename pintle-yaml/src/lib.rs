//! YAML 1.2 with the core schema, as JSON values.
//!
//! [`parse`] reads a text into a [`Value`] within [`Limits`], and refuses what two readers could read differently: a key that comes
//! twice, tags, merge keys, numbers that JSON does not have. [`locate`] returns where a part of it is, for messages.
//!
//! ```
//! use pintle_yaml::{Limits, locate, parse};
//!
//! let text = "servers:\n  - url: https://api.test\n    no: 2026-11-16\n";
//! let value = parse(text, &Limits::default())?;
//! assert_eq!(value["servers"][0]["no"], "2026-11-16");
//! assert_eq!(locate(text, "/servers/0/url").unwrap().to_string(), "line 2, column 5");
//! # Ok::<(), pintle_yaml::YamlError>(())
//! ```

mod error;
mod front_matter;
mod locate;
mod reader;
mod scalar;

use serde_json::Value;

pub use error::{Position, YamlError};
pub use front_matter::FrontMatter;
pub use locate::locate;

/// The limits of a text.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Limits {
    /// The bytes of the text. 16 MiB by default.
    pub bytes: usize,
    /// The levels of nesting, with those behind aliases. 100 by default.
    pub depth: usize,
    /// The bytes, roughly, that aliases may add to the value. 1 MiB by default; with 0 there may be none.
    pub aliased: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 16 << 20, depth: 100, aliased: 1 << 20 }
    }
}

/// Parses a text with one document. An empty one is `null`.
///
/// # Errors
///
/// It is not YAML, exceeds a limit, or has what is refused. The error has the place.
pub fn parse(text: &str, limits: &Limits) -> Result<Value, YamlError> {
    reader::read(text, limits)
}
