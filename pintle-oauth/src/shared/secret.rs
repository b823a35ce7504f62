use std::fmt;

use serde::{Deserialize, Serialize};

/// A text that is printed nowhere: a token, a client's secret, a key.
///
/// It is written out by [`serde`], because that is how a store keeps it.
#[derive(Clone, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text to itself.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text. Mind where it goes.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
