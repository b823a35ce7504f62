mod key;
mod trace;
mod value;

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{
    JsonObject, RequestId,
    common::{ClientCapabilities, Implementation, LoggingLevel, ProgressToken, RelatedTask},
};

pub use key::{MetaKeyError, keys};
pub use trace::{TraceContext, TraceParent, TraceParentError};
pub use value::MetaValue;

/// The `_meta` of a message or of a part of it: metadata by key.
///
/// Reserved keys have typed readers and setters; everything else passes through untouched. A reader answers `None`
/// when the key is absent or `null`, and an error that names the key when the value does not fit.
///
/// ```
/// use pintle_types::Meta;
///
/// let mut meta = Meta::new();
/// meta.set_progress_token("load-1");
/// meta.insert("com.example/tenant", "blue");
/// assert_eq!(serde_json::to_string(&meta)?, r#"{"progressToken":"load-1","com.example/tenant":"blue"}"#);
/// assert_eq!(meta.progress_token()?, Some("load-1".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A clone shares the entries until one of the two is changed: a server adds the same ones to every result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta(Arc<JsonObject>);

impl Meta {
    /// Creates empty metadata.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a value.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// Inserts a value. Keys are not checked: see [`check_key`](Self::check_key).
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        self.as_object_mut().insert(key.into(), value.into())
    }

    /// Removes a value.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.as_object_mut().shift_remove(key)
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all entries.
    pub fn as_object(&self) -> &JsonObject {
        &self.0
    }

    /// Returns all entries, mutably.
    pub fn as_object_mut(&mut self) -> &mut JsonObject {
        Arc::make_mut(&mut self.0)
    }

    /// Converts the metadata into its entries.
    pub fn into_object(self) -> JsonObject {
        Arc::unwrap_or_clone(self.0)
    }

    /// Returns the token of the progress notifications for this request, if they are wanted.
    pub fn progress_token(&self) -> Result<Option<ProgressToken>, MetaError> {
        self.read(keys::PROGRESS_TOKEN)
    }

    /// Requests progress notifications.
    pub fn set_progress_token(&mut self, token: impl Into<ProgressToken>) {
        self.write(keys::PROGRESS_TOKEN, &token.into());
    }

    /// Returns the revision of this request.
    pub fn protocol_version(&self) -> Result<Option<&str>, MetaError> {
        self.read(keys::PROTOCOL_VERSION)
    }

    /// Sets the revision of this request.
    pub fn set_protocol_version(&mut self, version: &str) {
        self.write(keys::PROTOCOL_VERSION, version);
    }

    /// Returns the capabilities of the client for this request.
    pub fn client_capabilities(&self) -> Result<Option<ClientCapabilities>, MetaError> {
        self.read(keys::CLIENT_CAPABILITIES)
    }

    /// Sets the capabilities of the client for this request.
    pub fn set_client_capabilities(&mut self, capabilities: &ClientCapabilities) {
        self.write(keys::CLIENT_CAPABILITIES, capabilities);
    }

    /// Returns the name and version of the client.
    pub fn client_info(&self) -> Result<Option<Implementation>, MetaError> {
        self.read(keys::CLIENT_INFO)
    }

    /// Sets the name and version of the client.
    pub fn set_client_info(&mut self, info: &Implementation) {
        self.write(keys::CLIENT_INFO, info);
    }

    /// Returns the lowest level of log messages that the client wants for this request. Absent means none.
    pub fn log_level(&self) -> Result<Option<LoggingLevel>, MetaError> {
        self.read(keys::LOG_LEVEL)
    }

    /// Requests log messages of this level and above.
    pub fn set_log_level(&mut self, level: LoggingLevel) {
        self.write(keys::LOG_LEVEL, &level);
    }

    /// Returns the name and version of the server.
    pub fn server_info(&self) -> Result<Option<Implementation>, MetaError> {
        self.read(keys::SERVER_INFO)
    }

    /// Sets the name and version of the server.
    pub fn set_server_info(&mut self, info: &Implementation) {
        self.write(keys::SERVER_INFO, info);
    }

    /// Returns the id of the request that opened the subscription of this message.
    pub fn subscription_id(&self) -> Result<Option<RequestId>, MetaError> {
        self.read(keys::SUBSCRIPTION_ID)
    }

    /// Sets the subscription to which this message belongs.
    pub fn set_subscription_id(&mut self, id: &RequestId) {
        self.write(keys::SUBSCRIPTION_ID, id);
    }

    /// Returns the task to which this message belongs.
    pub fn related_task(&self) -> Result<Option<RelatedTask>, MetaError> {
        self.read(keys::RELATED_TASK)
    }

    /// Sets the task to which this message belongs.
    pub fn set_related_task(&mut self, task: &RelatedTask) {
        self.write(keys::RELATED_TASK, task);
    }

    /// Returns the immediate response for the model while a task runs.
    pub fn model_immediate_response(&self) -> Result<Option<&str>, MetaError> {
        self.read(keys::MODEL_IMMEDIATE_RESPONSE)
    }

    /// Sets the immediate response for the model while a task runs.
    pub fn set_model_immediate_response(&mut self, response: &str) {
        self.write(keys::MODEL_IMMEDIATE_RESPONSE, response);
    }

    /// Returns the trace of which this message is part. It is empty if there is none.
    pub fn trace_context(&self) -> Result<TraceContext, MetaError> {
        Ok(TraceContext {
            parent: self.read(keys::TRACEPARENT)?,
            state: self.read(keys::TRACESTATE)?,
            baggage: self.read(keys::BAGGAGE)?,
        })
    }

    /// Sets the trace of this message. Members that `context` lacks are removed.
    pub fn set_trace_context(&mut self, context: &TraceContext) {
        self.write_or_remove(keys::TRACEPARENT, context.parent.as_ref());
        self.write_or_remove(keys::TRACESTATE, context.state.as_ref());
        self.write_or_remove(keys::BAGGAGE, context.baggage.as_ref());
    }

    fn read<'a, T: Deserialize<'a>>(&'a self, key: &'static str) -> Result<Option<T>, MetaError> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                T::deserialize(value).map(Some).map_err(|error| MetaError { key, reason: error.to_string() })
            }
        }
    }

    fn write<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        let value = serde_json::to_value(value).expect("our own types serialize");
        self.as_object_mut().insert(key.to_owned(), value);
    }

    fn write_or_remove<T: Serialize>(&mut self, key: &str, value: Option<&T>) {
        match value {
            Some(value) => self.write(key, value),
            None => drop(self.as_object_mut().shift_remove(key)),
        }
    }
}

impl From<JsonObject> for Meta {
    fn from(object: JsonObject) -> Self {
        Self(Arc::new(object))
    }
}

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        JsonObject::deserialize(deserializer).map(Self::from)
    }
}

/// A reserved key of `_meta` whose value does not fit.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MetaError {
    /// The key.
    pub key: &'static str,
    /// The fault of the value.
    pub reason: String,
}

impl fmt::Display for MetaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid `_meta` key `{}`: {}", self.key, self.reason)
    }
}

impl std::error::Error for MetaError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn meta(value: Value) -> Meta {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_set_is_read() {
        let mut meta = Meta::new();
        meta.set_progress_token(7);
        meta.set_protocol_version("some day");
        meta.set_client_capabilities(&ClientCapabilities::new());
        meta.set_client_info(&Implementation::new("c", "1"));
        meta.set_server_info(&Implementation::new("s", "1"));
        meta.set_log_level(LoggingLevel::Notice);
        meta.set_subscription_id(&"1".into());
        meta.set_related_task(&RelatedTask::new("t"));
        meta.set_model_immediate_response("wait");
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap();
        let trace =
            TraceContext { parent: Some(parent), state: Some("a=b".into()), baggage: Some("k=v".into()) };
        meta.set_trace_context(&trace);
        assert_eq!(
            serde_json::to_value(&meta).unwrap(),
            json!({
                "progressToken": 7,
                "io.modelcontextprotocol/protocolVersion": "some day",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
                "io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"},
                "io.modelcontextprotocol/logLevel": "notice",
                "io.modelcontextprotocol/subscriptionId": "1",
                "io.modelcontextprotocol/related-task": {"taskId": "t"},
                "io.modelcontextprotocol/model-immediate-response": "wait",
                "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                "tracestate": "a=b",
                "baggage": "k=v",
            })
        );
        assert_eq!(meta.progress_token(), Ok(Some(7.into())));
        assert_eq!(meta.protocol_version(), Ok(Some("some day")));
        assert_eq!(meta.client_capabilities(), Ok(Some(ClientCapabilities::new())));
        assert_eq!(meta.client_info().unwrap().unwrap().name, "c");
        assert_eq!(meta.server_info().unwrap().unwrap().name, "s");
        assert_eq!(meta.log_level(), Ok(Some(LoggingLevel::Notice)));
        assert_eq!(meta.subscription_id(), Ok(Some("1".into())));
        assert_eq!(meta.related_task(), Ok(Some(RelatedTask::new("t"))));
        assert_eq!(meta.model_immediate_response(), Ok(Some("wait")));
        assert_eq!(meta.trace_context(), Ok(trace));
        meta.set_trace_context(&TraceContext::default());
        assert_eq!(meta.get(keys::TRACEPARENT), None);
    }

    #[test]
    fn what_is_changed_in_a_clone_is_changed_there() {
        let first = meta(json!({"a/b": 1}));
        let mut second = first.clone();
        second.insert("a/b", 2);
        assert_eq!((first.get("a/b"), second.get("a/b")), (Some(&json!(1)), Some(&json!(2))));
    }

    #[test]
    fn absent_and_null_are_none() {
        assert_eq!(Meta::new().progress_token(), Ok(None));
        assert_eq!(meta(json!({"progressToken": null})).progress_token(), Ok(None));
    }

    #[test]
    fn a_value_that_does_not_fit_is_named() {
        let error =
            meta(json!({"io.modelcontextprotocol/logLevel": "loud"})).log_level().unwrap_err().to_string();
        assert!(
            error.starts_with(
                "invalid `_meta` key `io.modelcontextprotocol/logLevel`: unknown variant `loud`"
            ),
            "{error}"
        );
        let error =
            meta(json!({"io.modelcontextprotocol/clientInfo": {"name": "c"}})).client_info().unwrap_err();
        assert_eq!(error.reason, "missing field `version`");
        assert_eq!(meta(json!({"traceparent": "00-1"})).trace_context().unwrap_err().key, "traceparent");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..4).prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn anything_passes_through(object in prop::collection::btree_map(".*", any_json(), 0..6)) {
            let value: Value = object.into_iter().collect();
            let text = value.to_string();
            let meta: Meta = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(serde_json::to_string(&meta).unwrap(), text);
            // No reader may fall over whatever is there.
            let _ = (meta.progress_token(), meta.client_info(), meta.trace_context());
        }
    }
}
