use pintle::types::schema::Implementation;
use serde::Serialize;
use serde_json::Value;

use crate::failure::{Exit, Failure};

/// A question that was not answered.
pub(super) struct Asked {
    message: String,
    /// The params of the question, as the protocol has them.
    params: Value,
    server: Option<String>,
}

impl Asked {
    pub(super) fn new(server: Option<&Implementation>, message: String, params: &impl Serialize) -> Self {
        let params = serde_json::to_value(params).unwrap_or_default();
        Self { message, params, server: server.map(|server| server.name.clone()) }
    }

    /// Returns the failure of a verb that cannot answer.
    pub(super) fn into_failure(self, next: &str) -> Failure {
        let server = self.server.as_deref().unwrap_or("the server");
        let message = format!("{server} asks: {}", self.message);
        Failure::new(Exit::NeedsInput, message, next).data("question", self.params)
    }
}
