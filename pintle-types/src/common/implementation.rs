use serde::{Deserialize, Serialize};

use super::wire::words;
use crate::JsonObject;

/// The name and version of a client or a server.
///
/// Self-reported: for display and logs, never for decisions.
///
/// ```
/// use pintle_types::schema::Implementation;
///
/// let mut adder = Implementation::new("adder", "1.0.0");
/// adder.title = Some("The adder".into());
/// assert_eq!(serde_json::to_string(&adder)?, r#"{"name":"adder","title":"The adder","version":"1.0.0"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Implementation {
    /// The name for programs.
    pub name: String,
    /// The name to display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The version.
    pub version: String,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The URL of a website.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Icons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl Implementation {
    /// Creates an implementation from its name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }
}

/// An icon that a user interface may show.
///
/// Whoever renders it accepts only `https:` and `data:` sources and fetches without credentials.
#[non_exhaustive]
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// The URI of the icon, of scheme `https:` or `data:`.
    pub src: String,
    /// The media type, if the source has none or a wrong one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Suitable sizes, such as `48x48` or `any`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<String>>,
    /// The background of the icon. Absent means any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl Icon {
    /// Creates an icon for any size and background.
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), ..Self::default() }
    }
}

words! {
    /// The background for which an icon is designed.
    IconTheme {
        /// A light background.
        Light = "light",
        /// A dark background.
        Dark = "dark",
    }
}
