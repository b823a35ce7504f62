use serde_json::Value;

use crate::common::{LoggingLevel, object};

object! {
    /// The params of `logging/setLevel`: the lowest level that the client wants.
    #[derive(Debug)]
    SetLevelParams {
        /// The lowest level.
        level: LoggingLevel,
        ..meta
    }
    /// Creates params for `level` and above.
    new(level: LoggingLevel)
}

object! {
    /// A log message.
    #[derive(Debug)]
    LoggingMessageParams {
        /// The severity.
        level: LoggingLevel,
        /// The name of the logger.
        logger?: String,
        /// The data to log: text or any other JSON.
        data: Value,
        ..meta
    }
    /// Creates a message without a logger name.
    new(level: LoggingLevel, data: Value)
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
