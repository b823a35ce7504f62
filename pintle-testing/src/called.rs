use pintle::types::schema::{CallToolResult, LoggingMessageParams, ProgressParams};
use serde::de::DeserializeOwned;

/// A finished tool call with its notifications and input requests, from [`TestConnection::tool`](crate::TestConnection::tool).
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Called {
    /// The result.
    pub result: CallToolResult,
    /// The progress notifications, in order.
    pub progress: Vec<ProgressParams>,
    /// Log messages received during the call, in order. They may belong to other calls that ran at the same time.
    pub logs: Vec<LoggingMessageParams>,
    /// The input requests: messages of forms, URLs, texts sent to the model.
    pub questions: Vec<String>,
}

impl Called {
    /// Returns the text of all text blocks.
    pub fn text(&self) -> String {
        self.result.text()
    }

    /// Deserializes the structured content, or else the text as JSON: older revisions have structured content only for objects,
    /// and the oldest have none.
    ///
    /// # Panics
    ///
    /// The result is not a `T`.
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

    /// Whether the tool reported a failure.
    pub fn is_error(&self) -> bool {
        self.result.is_error == Some(true)
    }
}
