use pintle_types::schema::{CallToolResult, LoggingMessageParams, ProgressParams};
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
        self.result.text()
    }

    /// Its structured content, as a `T`; or else its text as JSON, because older revisions have structure only for
    /// objects, and the oldest none at all.
    ///
    /// # Panics
    ///
    /// It is no `T`.
    #[track_caller]
    pub fn structured<T: DeserializeOwned>(&self) -> T {
        let read = match &self.result.structured_content {
            Some(content) => serde_json::from_value(content.clone()),
            None => serde_json::from_str(&self.text()),
        };
        match read {
            Ok(value) => value,
            Err(error) => panic!("the result is another: {error}: {:?}", self.text()),
        }
    }

    /// Whether the tool says that it failed.
    pub fn is_error(&self) -> bool {
        self.result.is_error == Some(true)
    }
}
