use serde::{Deserialize, Serialize, Serializer};

use crate::{JsonObject, Meta, raw::ObjectWriter};

/// The contents of a resource, or of one part of it.
///
/// ```
/// use pintle_types::schema::ResourceContents;
///
/// let page: ResourceContents = serde_json::from_str(r#"{"uri":"note:1","text":"milk"}"#)?;
/// assert_eq!(page.as_text(), Some("milk"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(try_from = "Owned")]
pub struct ResourceContents {
    /// The URI.
    pub uri: String,
    /// The media type.
    pub mime_type: Option<String>,
    /// The text or the bytes.
    pub body: ResourceBody,
    /// Metadata.
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    pub extra: JsonObject,
}

impl ResourceContents {
    /// Creates contents of unknown media type.
    pub fn new(uri: impl Into<String>, body: ResourceBody) -> Self {
        Self { uri: uri.into(), mime_type: None, body, meta: None, extra: JsonObject::new() }
    }

    /// Creates text contents of unknown media type.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(uri, ResourceBody::Text(text.into()))
    }

    /// Creates binary contents of unknown media type, from base64.
    pub fn blob(uri: impl Into<String>, base64: impl Into<String>) -> Self {
        Self::new(uri, ResourceBody::Blob(base64.into()))
    }

    /// Returns the text, if this is text.
    pub fn as_text(&self) -> Option<&str> {
        match &self.body {
            ResourceBody::Text(text) => Some(text),
            ResourceBody::Blob(_) => None,
        }
    }

    /// Returns an estimate of the printed length. It is generous, because growing a buffer copies it.
    pub(in crate::schema) fn room(&self) -> usize {
        let (ResourceBody::Text(long) | ResourceBody::Blob(long)) = &self.body;
        long.len() + long.len() / 8 + self.uri.len() + 128
    }

    /// Prints the value as a piece of a member. Long texts are printed in place.
    pub(in crate::schema) fn write(&self, object: &mut ObjectWriter) -> Result<(), serde_json::Error> {
        let Self { uri, mime_type, body, meta, extra } = self;
        if meta.is_some() || !extra.is_empty() {
            object.write(&serde_json::to_string(self)?);
            return Ok(());
        }
        object.write(r#"{"uri":"#);
        object.write_text(uri);
        if let Some(mime_type) = mime_type {
            object.write(r#","mimeType":"#);
            object.write_text(mime_type);
        }
        let (name, long) = match body {
            ResourceBody::Text(text) => (r#","text":"#, text),
            ResourceBody::Blob(blob) => (r#","blob":"#, blob),
        };
        object.write(name);
        object.write_text(long);
        object.write("}");
        Ok(())
    }
}

/// The text or bytes of [`ResourceContents`].
#[expect(clippy::exhaustive_enums, reason = "every revision has these two")]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes, in base64.
    Blob(String),
}

impl Serialize for ResourceContents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (text, blob) = match &self.body {
            ResourceBody::Text(text) => (Some(text.as_str()), None),
            ResourceBody::Blob(blob) => (None, Some(blob.as_str())),
        };
        let Self { uri, mime_type, meta, extra, .. } = self;
        Borrowed { uri, mime_type: mime_type.as_deref(), text, blob, meta: meta.as_ref(), extra }
            .serialize(serializer)
    }
}

impl TryFrom<Owned> for ResourceContents {
    type Error = String;

    fn try_from(Owned { uri, mime_type, text, blob, meta, extra }: Owned) -> Result<Self, String> {
        let body = match (text, blob) {
            (Some(text), None) => ResourceBody::Text(text),
            (None, Some(blob)) => ResourceBody::Blob(blob),
            (Some(_), Some(_)) => {
                return Err(format!("resource contents `{uri}` have both `text` and `blob`"));
            }
            (None, None) => return Err(format!("resource contents `{uri}` have neither `text` nor `blob`")),
        };
        Ok(Self { uri, mime_type, body, meta, extra })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owned {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
    #[serde(flatten)]
    extra: JsonObject,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Borrowed<'a> {
    uri: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<&'a str>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a Meta>,
    #[serde(flatten)]
    extra: &'a JsonObject,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_come_back() {
        for text in [
            r#"{"uri":"a:b","text":""}"#,
            r#"{"uri":"a:b","mimeType":"image/png","blob":"AA==","_meta":{"x":1},"novel":[]}"#,
        ] {
            let contents: ResourceContents = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&contents).unwrap(), text);
        }
    }

    #[test]
    fn both_or_neither_is_refused() {
        for (text, message) in [
            (r#"{"uri":"a:b","text":"","blob":""}"#, "resource contents `a:b` have both `text` and `blob`"),
            (r#"{"uri":"a:b","text":null}"#, "resource contents `a:b` have neither `text` nor `blob`"),
            (r#"{"text":""}"#, "missing field `uri`"),
        ] {
            let error = serde_json::from_str::<ResourceContents>(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
