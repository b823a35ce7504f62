use std::collections::BTreeMap;

#[cfg(feature = "schemars")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::SecretValue;

/// An HTTP request of a tool. A text with `{name}` has the value of an argument there; `{{` and `}}` are braces.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[cfg_attr(feature = "schemars", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RequestEntry {
    /// The method: `GET` by default.
    pub method: Option<String>,
    /// The URL, with places in its path and in the values of its query. A value is one segment of the path or a part of one.
    pub url: String,
    /// Pairs of the query beside those of the URL. One is left out if an argument of it is, and there is one for each element of a list.
    pub query: BTreeMap<String, SecretValue>,
    /// Headers. One is left out if an argument of it is.
    pub headers: BTreeMap<String, SecretValue>,
    /// The body as JSON. A text that is a place alone becomes the value as it is; a member is left out if an argument of it is.
    pub json: Option<Value>,
    /// The body as a form, with pairs like those of `query`.
    pub form: Option<BTreeMap<String, String>>,
    /// The body as a text.
    pub body: Option<String>,
    /// Whether the request may go to a private address although the URL is not written with one.
    pub allow_private: bool,
    /// A JSON pointer to the part of the answer that is the result, such as `/data/items`; the whole answer by default.
    pub pick: Option<String>,
}
