use pintle_types::schema::{CallToolResult, ContentBlock, LoggingMessageParams, ProgressParams};
use serde::de::DeserializeOwned;

/// A call of a tool, and all that was said while it ran. From [`TestConnection::tool`](super::TestConnection::tool).
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Called {
    /// What came of it.
    pub result: CallToolResult,
    /// Its progress, in order.
    pub progress: Vec<ProgressParams>,
    /// Log messages that came meanwhile, in order. A server that runs several calls at once logs for all of them.
    pub logs: Vec<LoggingMessageParams>,
    /// What was asked: the messages of forms, the URLs of pages, what the model was told.
    pub questions: Vec<String>,
}

impl Called {
    /// Its text, of all blocks that are text.
    pub fn text(&self) -> String {
        let texts: Vec<_> = self.result.content.iter().filter_map(ContentBlock::as_text).collect();
        texts.join("\n")
    }

    /// Its structured content, as a `T`.
    ///
    /// # Panics
    ///
    /// There is none, or it is no `T`.
    #[track_caller]
    pub fn structured<T: DeserializeOwned>(&self) -> T {
        let Some(content) = &self.result.structured_content else {
            panic!("the result has no structured content: {:?}", self.text())
        };
        match serde_json::from_value(content.clone()) {
            Ok(value) => value,
            Err(error) => panic!("{content}: {error}"),
        }
    }

    /// Whether the tool says that it failed.
    pub fn is_error(&self) -> bool {
        self.result.is_error == Some(true)
    }
}
