use pintle::{
    content::{Audio, Image},
    types::schema::{CallToolResult, ContentBlock},
};
#[cfg(feature = "schemars")]
use schemars::JsonSchema;
use serde::Deserialize;

/// The kind of the output of a command.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[cfg_attr(feature = "schemars", derive(JsonSchema))]
#[cfg_attr(feature = "schemars", schemars(with = "String"))]
#[serde(try_from = "String")]
#[non_exhaustive]
pub enum OutputKind {
    /// Text. What is no UTF-8 is replaced.
    #[default]
    Text,
    /// A JSON value, which is also the structured content of the result.
    Json,
    /// An image of this MIME type.
    Image(String),
    /// Audio of this MIME type.
    Audio(String),
}

impl TryFrom<String> for OutputKind {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Ok(match &*text {
            "text" => Self::Text,
            "json" => Self::Json,
            mime if mime.starts_with("image/") => Self::Image(text),
            mime if mime.starts_with("audio/") => Self::Audio(text),
            _ => {
                return Err(format!(
                    "`{text}` is no output: write `text`, `json`, or the MIME type of an image or audio, such as `image/png`"
                ));
            }
        })
    }
}

impl OutputKind {
    /// Returns the result of a call whose command has written this.
    pub(crate) fn result(&self, output: &[u8]) -> Result<CallToolResult, String> {
        let content: ContentBlock = match self {
            Self::Text => String::from_utf8_lossy(output).into_owned().into(),
            Self::Json => {
                let value = serde_json::from_slice(output).map_err(|error| {
                    format!(
                        "its output is no JSON: {error}; have it print one value, or set `output = \"text\"`"
                    )
                })?;
                let text = String::from_utf8_lossy(output).into_owned();
                let mut result = CallToolResult::new(vec![text.into()]);
                result.structured_content = Some(value);
                return Ok(result);
            }
            Self::Image(mime) => Image::new(mime, output).map_err(|error| error.to_string())?.into(),
            Self::Audio(mime) => Audio::new(mime, output).map_err(|error| error.to_string())?.into(),
        };
        Ok(CallToolResult::new(vec![content]))
    }
}
