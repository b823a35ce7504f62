use std::{ops::Deref, sync::Arc};

use http::Extensions;
use pintle_types::{
    JsonObject, RpcError,
    schema::{CreateMessageResult, ElicitAction, ElicitResult, Implementation},
};
use serde::Serialize;
use serde_json::Value;

use super::{progress::QuestionProgress, task_table::SessionTasks};
use crate::client::sealed::Sealed;

/// An input request of a server, and which server sent it.
///
/// A user interface has to show which server asks. The fields of `params` can be used directly.
///
/// ```
/// use pintle::client::{Answer, Client};
///
/// let client = Client::new("demo", "0.1.0").on_elicit(|question| async move {
///     let server = question.server.as_ref().map_or("a server", |server| &server.name);
///     println!("{server} asks: {}", question.message);
///     for (name, _field) in question.requested_schema.properties.iter() {
///         println!("  {name}: ...");
///     }
///     Answer::Decline
/// });
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Question<P> {
    /// The name of the connection, if it was opened with [`Client::connect_as`](crate::Client::connect_as).
    pub connection: Option<Arc<str>>,
    /// The server's name and version, as reported by itself. Not a basis for trust.
    pub server: Option<Arc<Implementation>>,
    /// The key that the server's handler gave the question, which tells questions of one call apart. Without a session it is always
    /// known. In a session it is if the client declares the extension [`question_keys`](crate::forward::question_keys) and the server is
    /// one of this SDK.
    pub key: Option<Arc<str>>,
    /// The params of the server's request.
    pub params: P,
    extensions: Extensions,
    reports: Option<QuestionProgress>,
}

impl<P> Question<P> {
    pub(in crate::client) fn new(asker: Asker, params: P) -> Self {
        let Asker { connection, server, key, extensions, reports, tasks: _ } = asker;
        Self { connection, server, key, params, extensions, reports }
    }

    /// Returns the extensions that the [layers](crate::Client::layer) of the client have inserted.
    ///
    /// ```
    /// use pintle::{Client, client::{Answer, Cx, Next, around}};
    ///
    /// #[derive(Clone)]
    /// struct Window(u32);
    ///
    /// let client = Client::new("demo", "0.1.0")
    ///     .on_elicit(|question| async move {
    ///         match question.extensions().get::<Window>() {
    ///             Some(Window(number)) => println!("asked in window {number}"),
    ///             None => println!("asked in no window"),
    ///         }
    ///         Answer::Decline
    ///     })
    ///     .layer(&around(|cx: Cx, next: Next| next.run(cx.with(Window(7)))));
    /// ```
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// Returns whether the server requested progress reports of the answer. In the stateless era it cannot.
    pub fn wants_progress(&self) -> bool {
        self.reports.is_some()
    }

    /// Reports progress of the answer to the server: `done` of `total`. It is sent only if the server requested progress, only if
    /// `done` increases, and only until the answer is sent.
    ///
    /// ```
    /// use pintle::{Client, types::schema::{ContentBlock, CreateMessageResult}};
    ///
    /// let client = Client::new("demo", "0.1.0").on_sample(|question| async move {
    ///     question.progress(1.0, 2.0).await;
    ///     // ... ask the model ...
    ///     question.progress(2.0, 2.0).await;
    ///     CreateMessageResult::new("some-model", ContentBlock::text("four"))
    /// });
    /// ```
    pub async fn progress(&self, done: f64, total: impl Into<Option<f64>>) {
        self.report(done, total.into(), None).await;
    }

    /// Reports progress with a message: see [`progress`](Self::progress).
    pub async fn progress_with(&self, done: f64, total: impl Into<Option<f64>>, message: &str) {
        self.report(done, total.into(), Some(message)).await;
    }

    async fn report(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(reports) = &self.reports {
            reports.send(done, total, message).await;
        }
    }
}

/// The connection and the server that an input request came from.
#[derive(Clone, Debug)]
pub(in crate::client) struct Asker {
    pub(in crate::client) connection: Option<Arc<str>>,
    pub(in crate::client) server: Option<Arc<Implementation>>,
    pub(in crate::client) key: Option<Arc<str>>,
    pub(in crate::client) extensions: Extensions,
    pub(in crate::client) reports: Option<QuestionProgress>,
    /// The answers that run as tasks, if the server may ask for them.
    pub(in crate::client) tasks: Option<SessionTasks>,
}

impl<P> Deref for Question<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.params
    }
}

/// The user's answer to a form or a URL.
///
/// ```
/// use pintle::client::Answer;
/// use serde_json::json;
///
/// let answer = Answer::accept(json!({"city": "Bergen"}));
/// # assert_eq!(answer, Answer::Accept(json!({"city": "Bergen"})));
/// ```
#[expect(clippy::exhaustive_enums, reason = "the protocol has these three")]
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The user agrees. For a form, the values that were filled in; for a URL, `null`: the user will open it.
    Accept(Value),
    /// The user refuses.
    Decline,
    /// The user closed the question without an answer.
    Cancel,
}

impl Answer {
    /// An accepted form with these values. Values that cannot be serialized are refused when the answer is sent.
    pub fn accept(content: impl Serialize) -> Self {
        Self::Accept(serde_json::to_value(content).unwrap_or(Value::Bool(false)))
    }
}

/// Types that a handler of input requests may return: an answer, or a `Result` of one. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an answer to this question",
    note = "return `Answer` or `ElicitResult` from `on_elicit`, `CreateMessageResult` from `on_sample`, or a `Result` of one with `RpcError`"
)]
pub trait IntoReply<T>: Sealed {
    /// Converts to the result that is sent to the server.
    fn into_reply(self) -> Result<T, RpcError>;
}

impl Sealed for Answer {}
impl Sealed for ElicitResult {}
impl Sealed for CreateMessageResult {}
impl<T> Sealed for Result<T, RpcError> {}

impl IntoReply<Self> for ElicitResult {
    fn into_reply(self) -> Result<Self, RpcError> {
        Ok(self)
    }
}

impl IntoReply<Self> for CreateMessageResult {
    fn into_reply(self) -> Result<Self, RpcError> {
        Ok(self)
    }
}

impl IntoReply<ElicitResult> for Answer {
    fn into_reply(self) -> Result<ElicitResult, RpcError> {
        Ok(match self {
            Self::Accept(content) => {
                let mut result = ElicitResult::new(ElicitAction::Accept);
                result.content = match content {
                    Value::Object(content) => Some(content),
                    Value::Null => None,
                    _ => return Err(RpcError::internal("the answer to a form is an object")),
                };
                result
            }
            Self::Decline => ElicitResult::new(ElicitAction::Decline),
            Self::Cancel => ElicitResult::new(ElicitAction::Cancel),
        })
    }
}

impl IntoReply<ElicitResult> for Result<Answer, RpcError> {
    fn into_reply(self) -> Result<ElicitResult, RpcError> {
        self.and_then(Answer::into_reply)
    }
}

impl IntoReply<ElicitResult> for Result<ElicitResult, RpcError> {
    fn into_reply(self) -> Self {
        self
    }
}

impl IntoReply<CreateMessageResult> for Result<CreateMessageResult, RpcError> {
    fn into_reply(self) -> Self {
        self
    }
}

/// Adds the defaults of omitted fields to an accepted form. Fails if a required field is missing.
pub(in crate::client) fn complete(
    schema: Option<&JsonObject>,
    mut result: ElicitResult,
) -> Result<ElicitResult, RpcError> {
    if result.action != ElicitAction::Accept {
        result.content = None;
        return Ok(result);
    }
    let Some(schema) = schema else { return Ok(result) };
    let content = result.content.get_or_insert_default();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let (false, Some(default)) = (content.contains_key(name), property.get("default")) {
            content.insert(name.clone(), default.clone());
        }
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    match required.filter_map(Value::as_str).find(|name| !content.contains_key(*name)) {
        Some(name) => Err(RpcError::internal(format!("the answer lacks `{name}`, which the form requires"))),
        None => Ok(result),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn completed(schema: &Value, answer: Answer) -> Result<Value, String> {
        let result = answer.into_reply().unwrap();
        let result = complete(schema.as_object(), result).map_err(|error| error.to_string())?;
        Ok(serde_json::to_value(result).unwrap())
    }

    #[test]
    fn defaults_are_filled_in_and_what_is_required_must_be_there() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "string", "default": "x"}, "b": {"type": "integer"}},
            "required": ["b"]
        });
        assert_eq!(
            completed(&schema, Answer::accept(json!({"b": 1}))),
            Ok(json!({"action": "accept", "content": {"a": "x", "b": 1}}))
        );
        assert_eq!(
            completed(&schema, Answer::accept(json!({"a": "y"}))),
            Err("the answer lacks `b`, which the form requires (-32603)".into())
        );
        assert_eq!(completed(&schema, Answer::Decline), Ok(json!({"action": "decline"})));
    }
}
