use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::common::LoggingLevel;
use crate::{JsonObject, Meta};

/// The params of `logging/setLevel`: the lowest level that the client wants.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct SetLevelParams {
    /// The lowest level.
    pub level: LoggingLevel,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl SetLevelParams {
    /// Creates params for `level` and above.
    pub fn new(level: LoggingLevel) -> Self {
        Self { level, meta: None, extra: JsonObject::new() }
    }
}

/// A log message.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct LoggingMessageParams {
    /// The severity.
    pub level: LoggingLevel,
    /// The name of the logger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// The data to log: text or any other JSON.
    pub data: Value,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Fields that this crate does not know.
    #[serde(flatten)]
    pub extra: JsonObject,
}

impl LoggingMessageParams {
    /// Creates a message without a logger name.
    pub fn new(level: LoggingLevel, data: Value) -> Self {
        Self { level, logger: None, data, meta: None, extra: JsonObject::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_may_be_null_but_not_absent() {
        let text = r#"{"level":"info","data":null}"#;
        let params: LoggingMessageParams = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&params).unwrap(), text);
        let error = serde_json::from_str::<LoggingMessageParams>(r#"{"level":"info"}"#).unwrap_err();
        assert!(error.to_string().starts_with("missing field `data`"));
    }
}
