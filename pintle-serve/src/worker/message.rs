use pintle::{
    server::{Cx, Elicited, Form, ToolError},
    types::{
        JsonObject,
        schema::{CallToolResult, LoggingLevel},
    },
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::questions::OWN_KEYS;

/// The most bytes of a line that neither ends a call nor fails it.
const MAX_NOTICE: usize = 16 << 10;

/// A line of a worker about one of its calls.
#[derive(Debug, PartialEq)]
pub(super) enum WorkerMessage {
    Result(Value),
    Error(String),
    Question(WorkerQuestion),
    Once(OnceValue),
    Progress { done: f64, total: Option<f64>, text: Option<String> },
    Log { level: LoggingLevel, data: Value },
}

/// A question to the user.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkerQuestion {
    pub(super) key: String,
    message: String,
    /// The schema of a form. Without one, the user only agrees.
    schema: Option<Value>,
}

/// The value of an action that a later run of the call does not repeat.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OnceValue {
    pub(super) key: String,
    pub(super) value: Value,
}

impl WorkerMessage {
    /// Reads the members of a line of so many bytes. An error says what is wrong with it.
    pub(super) fn read(mut line: JsonObject, length: usize) -> Result<Self, String> {
        if let Some(result) = line.remove("result") {
            return Ok(Self::Result(result));
        }
        if let Some(error) = line.remove("error") {
            return Ok(Self::Error(text_of(error)));
        }
        if length > MAX_NOTICE {
            return Err(format!(
                "a line of {length} bytes, and {MAX_NOTICE} are allowed of one without a result: write less"
            ));
        }
        if let Some(question) = line.remove("question") {
            return member("question", question).map(Self::Question);
        }
        if let Some(value) = line.remove("once") {
            return member("once", value).map(Self::Once);
        }
        if let Some(done) = line.remove("progress") {
            let total = line.remove("total").map(|total| member("total", total)).transpose()?;
            let text = line.remove("message").map(text_of);
            return Ok(Self::Progress { done: member("progress", done)?, total: total.flatten(), text });
        }
        let Some(data) = line.remove("log") else {
            return Err(
                "a line without `result`, `error`, `question`, `once`, `progress` and `log`: write one of them"
                    .to_owned(),
            );
        };
        let level = line.remove("level").map(|level| member("level", level)).transpose()?;
        Ok(Self::Log { level: level.unwrap_or(LoggingLevel::Info), data })
    }

    /// Returns whether the run of the call is over with it.
    pub(super) fn ends_run(&self) -> bool {
        matches!(self, Self::Result(_) | Self::Error(_) | Self::Question(_))
    }
}

/// Returns the number of the call that a line begins with, whatever comes after it.
pub(super) fn call_at_start(line: &str) -> Option<u64> {
    let mut rest = line;
    for token in ["{", "\"call\"", ":"] {
        rest = rest.trim_start().strip_prefix(token)?;
    }
    let rest = rest.trim_start();
    rest[..rest.find(|letter: char| !letter.is_ascii_digit())?].parse().ok()
}

fn member<T: DeserializeOwned>(name: &str, value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| format!("a wrong `{name}`: {error}"))
}

fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Returns the result of a call: a text, a whole result with `content`, or another value, which is structured content too.
pub(super) fn result_of(value: Value) -> Result<CallToolResult, String> {
    match value {
        Value::Null => Ok(CallToolResult::new(Vec::new())),
        Value::String(text) => Ok(CallToolResult::new(vec![text.into()])),
        Value::Object(ref members) if members.get("content").is_some_and(Value::is_array) => {
            member("result", value)
        }
        value => {
            let mut result = CallToolResult::new(vec![value.to_string().into()]);
            result.structured_content = Some(value);
            Ok(result)
        }
    }
}

impl WorkerQuestion {
    /// Returns the form. An error says what is wrong with it.
    pub(super) fn form(&self) -> Result<Form, String> {
        if self.key.starts_with(OWN_KEYS) {
            return Err(format!(
                "the question `{}` has a key of the tool itself: begin it with another word",
                self.key
            ));
        }
        match &self.schema {
            None => Ok(Form::new()),
            Some(schema) => Form::from_schema(schema)
                .map_err(|error| format!("the question `{}` cannot be asked: {error}", self.key)),
        }
    }

    /// Asks the user, and returns the answer as workers read it.
    pub(super) async fn ask(&self, cx: &Cx) -> Result<Value, ToolError> {
        let form = self.form().map_err(ToolError::new)?;
        Ok(match cx.elicit_form(&self.key, &self.message, &form).await? {
            Elicited::Accept(content) => json!({"action": "accept", "content": content}),
            Elicited::Decline => json!({"action": "decline"}),
            Elicited::Cancel => json!({"action": "cancel"}),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: Value) -> Result<WorkerMessage, String> {
        let Value::Object(line) = line else { panic!("{line}") };
        WorkerMessage::read(line, 100)
    }

    #[test]
    fn a_line_is_one_of_six() {
        assert_eq!(read(json!({"result": null})), Ok(WorkerMessage::Result(Value::Null)));
        assert_eq!(read(json!({"error": {"a": 1}})), Ok(WorkerMessage::Error("{\"a\":1}".to_owned())));
        let progress = WorkerMessage::Progress { done: 1.0, total: None, text: None };
        assert_eq!(read(json!({"progress": 1, "total": null})), Ok(progress));
        let log = WorkerMessage::Log { level: LoggingLevel::Info, data: json!("a") };
        assert_eq!(read(json!({"log": "a"})), Ok(log));
        let once = WorkerMessage::Once(OnceValue { key: "k".to_owned(), value: Value::Null });
        assert_eq!(read(json!({"once": {"key": "k", "value": null}})), Ok(once));
        for (wrong, expected) in [
            (json!({"reslt": 1}), "a line without `result`, `error`"),
            (json!({"progress": "half"}), "a wrong `progress`: invalid type"),
            (json!({"log": 1, "level": "loud"}), "a wrong `level`: unknown variant `loud`"),
            (json!({"question": {"key": "k"}}), "a wrong `question`: missing field `message`"),
            (json!({"question": {"key": "k", "message": "m", "scema": 1}}), "unknown field `scema`"),
            (json!({"once": {"key": "k"}}), "a wrong `once`: missing field `value`"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let long = WorkerMessage::read([("log".to_owned(), json!("a"))].into_iter().collect(), 1 << 20);
        assert!(long.unwrap_err().contains("write less"));
    }

    #[test]
    fn a_line_that_is_no_json_has_its_call_at_its_start() {
        for line in [r#"{"call":12,"result":NaN}"#, r#" { "call" : 12 , "result": "\udce9"}"#] {
            assert_eq!(call_at_start(line), Some(12), "{line}");
        }
        for line in
            ["", "{", "call", r#"{"call":"#, r#"{"call":12"#, r#"{"call":x"#, r#"{"result":NaN,"call":12}"#]
        {
            assert_eq!(call_at_start(line), None, "{line}");
        }
        assert_eq!(call_at_start(r#"{"call":99999999999999999999,"result":NaN}"#), None);
    }

    #[test]
    fn a_value_becomes_a_result() {
        let printed = |value: Value| serde_json::to_value(result_of(value).unwrap()).unwrap();
        assert_eq!(printed(json!("a"))["content"][0]["text"], "a");
        assert_eq!(printed(json!("a")).get("structuredContent"), None);
        assert_eq!(printed(Value::Null)["content"], json!([]));
        assert_eq!(printed(json!({"n": 1}))["structuredContent"], json!({"n": 1}));
        assert_eq!(printed(json!({"n": 1}))["content"][0]["text"], "{\"n\":1}");
        let whole = json!({"content": [{"type": "text", "text": "a"}], "isError": true});
        assert_eq!(printed(whole)["isError"], true);
        assert!(result_of(json!({"content": [1]})).unwrap_err().contains("a wrong `result`"));
    }
}
