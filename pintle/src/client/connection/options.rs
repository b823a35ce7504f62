use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pintle_types::{
    JsonObject, Meta, RawObject,
    schema::{ListToolsResult, LoggingLevel, LoggingMessageParams, ProgressParams, Tool},
};
use serde::de::DeserializeOwned;
use serde_json::value::to_raw_value;

use super::{Connection, batch::BatchEntry, call::unprintable, slot::OutputSlot, unresolved::UnresolvedSlot};
use crate::{
    Error, Result,
    client::{
        asking::{Handlers, Report},
        state::{CallHandlers, CallSender, ConnectionState},
    },
};

/// A callback of one request. The layers of a client may send the request more than once, and share it.
pub(in crate::client) type OwnCallback<T> = Arc<Mutex<dyn FnMut(T) + Send>>;

/// Decodes params for a callback, if there is one.
fn call_back<T: DeserializeOwned>(callback: Option<&OwnCallback<T>>, params: &RawObject) {
    if let (Some(callback), Ok(params)) = (callback, params.decode()) {
        callback.lock().unwrap_or_else(PoisonError::into_inner)(params);
    }
}

fn pass<T>(callback: &OwnCallback<T>, value: T) {
    callback.lock().unwrap_or_else(PoisonError::into_inner)(value);
}

/// Options of one request.
#[derive(Clone)]
pub(in crate::client) struct RequestOptions {
    pub(in crate::client) timeout: Duration,
    pub(in crate::client) max_timeout: Duration,
    /// Whether progress restarts the timeout.
    pub(in crate::client) extends: bool,
    /// Whether to request progress.
    pub(in crate::client) progress: bool,
    pub(in crate::client) on_progress: Option<OwnCallback<ProgressParams>>,
    pub(in crate::client) on_log: Option<OwnCallback<LoggingMessageParams>>,
    pub(in crate::client) log_level: Option<LoggingLevel>,
    pub(in crate::client) meta: Option<Meta>,
    /// The handlers of this request alone.
    handlers: Option<Arc<CallHandlers>>,
    /// Whether input that no handler gives suspends the request.
    pub(in crate::client) suspends: bool,
    /// A callback for the notifications of a request that is forwarded for another client, unparsed, in place of the others.
    pub(in crate::client) on_notification: Option<OwnCallback<ForwardEvent>>,
    /// The use of the result.
    pub(in crate::client) result_use: ResultUse,
    /// Where a result of an extension is put, if the caller resolves it.
    pub(in crate::client) unresolved: Option<UnresolvedSlot>,
    /// The tool that is looked for in a list, and where it is put as the server has it.
    pub(in crate::client) looked_up: Option<(Arc<str>, OutputSlot<Arc<Tool>>)>,
    /// The place of the request in a batch, if it is sent with others.
    pub(in crate::client) batch_entry: Option<BatchEntry>,
}

/// A notification of a forwarded request, unparsed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ForwardEvent {
    /// The params of a progress notification.
    Progress(RawObject),
    /// The params of a log message.
    Log(RawObject),
    /// The server ended the stream of the request for now. It is resumed after this time.
    StreamPaused(Duration),
}

/// Where the text of a page of tools is put, and the page.
pub(in crate::client) type ToolsPageSlot = OutputSlot<(Box<str>, ListToolsResult)>;

/// The use of the result of a request, inside of the layers.
#[derive(Clone, Debug)]
pub(in crate::client) enum ResultUse {
    /// Returned to the caller.
    Caller,
    /// Checked against the schema of its tool.
    ToolResult,
    /// Remembered, as a page of tools, which the caller gets decoded.
    ToolsPage(ToolsPageSlot),
    /// Returned to the client of another connection, which answers what the server needs first.
    Forwarded,
}

impl RequestOptions {
    /// The defaults of a connection.
    pub(in crate::client) fn of(connection: &Connection) -> Self {
        let state = connection.shared();
        let settings = &state.settings;
        let shown = settings.on_progress.clone();
        Self {
            timeout: settings.timeouts.call,
            max_timeout: settings.timeouts.call_max,
            extends: settings.timeouts.progress_extends,
            progress: shown.is_some() || settings.timeouts.progress_extends,
            on_progress: shown.map(|show| {
                let name = state.name.clone();
                let shared: OwnCallback<ProgressParams> =
                    Arc::new(Mutex::new(move |progress| show(Report::new(name.clone(), progress))));
                shared
            }),
            on_log: None,
            log_level: None,
            meta: None,
            handlers: None,
            suspends: false,
            on_notification: None,
            result_use: ResultUse::Caller,
            unresolved: None,
            looked_up: None,
            batch_entry: None,
        }
    }

    /// Returns the options of another request of the same call. It has no timeout.
    pub(in crate::client) fn for_same_call(&self) -> Self {
        Self {
            timeout: Duration::MAX,
            max_timeout: Duration::MAX,
            result_use: ResultUse::Caller,
            unresolved: None,
            looked_up: None,
            batch_entry: None,
            ..self.clone()
        }
    }

    /// The handlers of input requests, to be changed.
    pub(in crate::client) fn questions_mut(&mut self) -> &mut Handlers {
        &mut self.handlers_mut().questions
    }

    pub(in crate::client) fn set_on_log(&mut self, call: OwnCallback<LoggingMessageParams>) {
        self.on_log = Some(call);
        self.handlers_mut().logs = true;
    }

    /// Calls back with a progress notification.
    pub(in crate::client) fn show_progress(&self, params: RawObject) {
        match &self.on_notification {
            None => call_back(self.on_progress.as_ref(), &params),
            Some(callback) => pass(callback, ForwardEvent::Progress(params)),
        }
    }

    /// Calls back with a log message.
    pub(in crate::client) fn show_log(&self, params: RawObject) {
        match &self.on_notification {
            None => call_back(self.on_log.as_ref(), &params),
            Some(callback) => pass(callback, ForwardEvent::Log(params)),
        }
    }

    /// Calls back if the server has ended the stream of the request for now. Only relays want to know.
    pub(in crate::client) fn show_stream_pause(&self, wait: Duration) {
        if let Some(callback) = &self.on_notification {
            pass(callback, ForwardEvent::StreamPaused(wait));
        }
    }

    pub(in crate::client) fn handlers_mut(&mut self) -> &mut CallHandlers {
        Arc::make_mut(self.handlers.get_or_insert_default())
    }

    /// The handlers of input requests: those of the request, completed by those of the client.
    pub(in crate::client) fn questions(&self, state: &ConnectionState) -> Handlers {
        let base = &state.settings.handlers;
        self.handlers.as_ref().map_or_else(|| base.clone(), |own| own.questions.or(base))
    }

    /// The level of log messages to request: that of the request, or of the connection; `info` if there is only a callback.
    pub(in crate::client) fn log_level(&self, state: &ConnectionState) -> Option<LoggingLevel> {
        if self.on_notification.is_some() {
            return self.log_level;
        }
        let own = self.log_level.or_else(|| state.log_level());
        own.or_else(|| self.on_log.as_ref().map(|_| LoggingLevel::Info))
    }

    /// Declares the capabilities of handlers that the client lacks, for revisions that declare them with each request.
    pub(in crate::client) fn declare(&mut self, state: &ConnectionState) -> Result<()> {
        let base = &state.settings.handlers;
        if let Some(own) = &mut self.handlers
            && own.capabilities.is_none()
            && own.questions.adds_to(base)
        {
            let capabilities = state.settings.capabilities(&own.questions.or(base));
            let capabilities =
                RawObject::from_serialize(&capabilities).map_err(|error| unprintable(&error))?;
            Arc::make_mut(own).capabilities = Some(capabilities);
        }
        Ok(())
    }

    /// Attaches the handlers to the driver's end of a call.
    pub(in crate::client) fn attach(&self, sender: CallSender) -> CallSender {
        match &self.handlers {
            Some(own) => sender.with_handlers(Some(own.clone())),
            None => sender,
        }
    }

    /// Adds metadata to params: that of the connection, overridden by that of the params, overridden by that of the request.
    pub(in crate::client) fn with_meta(
        &self,
        params: RawObject,
        default: Option<&Meta>,
    ) -> Result<RawObject> {
        if default.is_none() && self.meta.is_none() {
            return Ok(params);
        }
        let given: Option<JsonObject> = params
            .decode_member("_meta")
            .map_err(|error| Error::Misuse(format!("`_meta` of the params is not an object: {error}")))?;
        let mut merged = JsonObject::new();
        let parts = [default.map(Meta::as_object), given.as_ref(), self.meta.as_ref().map(Meta::as_object)];
        for (key, value) in parts.into_iter().flatten().flatten() {
            merged.insert(key.clone(), value.clone());
        }
        Ok(params.with("_meta", &to_raw_value(&merged).map_err(|error| unprintable(&error))?))
    }
}

impl fmt::Debug for RequestOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestOptions").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// The setters of [`RequestOptions`], for types that have a field `options`.
macro_rules! request_options {
    () => {
        /// Sets the timeout.
        pub fn timeout(mut self, timeout: std::time::Duration) -> Self {
            self.options.timeout = timeout;
            self
        }

        /// Restarts the timeout with each progress notification, up to [`Timeouts::call_max`](crate::Timeouts::call_max) in all.
        pub fn extended_by_progress(mut self) -> Self {
            self.options.extends = true;
            self.options.progress = true;
            self
        }

        /// Sets a callback for progress notifications and requests them, in place of
        /// [`Client::on_progress`](crate::Client::on_progress). It is called in order, before the result is returned.
        pub fn on_progress(
            mut self,
            call: impl FnMut(pintle_types::schema::ProgressParams) + Send + 'static,
        ) -> Self {
            self.options.progress = true;
            self.options.on_progress = Some(std::sync::Arc::new(std::sync::Mutex::new(call)));
            self
        }

        /// Sets a callback for log messages of this request, in place of [`Client::on_log`](crate::Client::on_log). It is called in
        /// order, before the result is returned.
        ///
        /// [`log_level`](Self::log_level) sets the minimum level; the default is that of the connection, or `info` if it has none.
        /// Messages that cannot be attributed to this request go to the client's callback: see
        /// [`client`](crate::client#handlers-of-one-request).
        pub fn on_log(
            mut self,
            call: impl FnMut(pintle_types::schema::LoggingMessageParams) + Send + 'static,
        ) -> Self {
            self.options.set_on_log(std::sync::Arc::new(std::sync::Mutex::new(call)));
            self
        }

        /// Sets the minimum level of log messages for this request, where the revision has levels per request.
        pub fn log_level(mut self, level: pintle_types::schema::LoggingLevel) -> Self {
            self.options.log_level = Some(level);
            self
        }

        /// Sets metadata of the request, such as a trace context. It is merged over that of the connection.
        pub fn meta(mut self, meta: pintle_types::Meta) -> Self {
            self.options.meta = Some(meta);
            self
        }

        /// Returns [`Error::Suspended`](crate::Error::Suspended) if a handler answers an input request with an error, so that the
        /// request can be [resumed](crate::Connection::resume) later. In a session the server gets the error, as without this.
        pub fn suspendable(mut self) -> Self {
            self.options.suspends = true;
            self
        }

        /// Sets the handler of forms that the server requests for this request, in place of
        /// [`Client::on_elicit`](crate::Client::on_elicit). See [`client`](crate::client#handlers-of-one-request).
        pub fn on_elicit<F, Fut>(mut self, handle: F) -> Self
        where
            F: Fn(crate::client::Question<pintle_types::schema::ElicitFormParams>) -> Fut
                + Send
                + Sync
                + 'static,
            Fut:
                Future<Output: crate::client::IntoReply<pintle_types::schema::ElicitResult>> + Send + 'static,
        {
            self.options.questions_mut().form = Some(crate::client::asking::handler(handle));
            self
        }

        /// Sets the handler of URLs that the server wants opened for this request, in place of
        /// [`Client::on_elicit_url`](crate::Client::on_elicit_url). See [`client`](crate::client#handlers-of-one-request).
        pub fn on_elicit_url<F, Fut>(mut self, handle: F) -> Self
        where
            F: Fn(crate::client::Question<crate::client::ElicitUrl>) -> Fut + Send + Sync + 'static,
            Fut:
                Future<Output: crate::client::IntoReply<pintle_types::schema::ElicitResult>> + Send + 'static,
        {
            self.options.questions_mut().url = Some(crate::client::asking::handler(handle));
            self
        }

        /// Sets the handler of requests to the model for this request, in place of
        /// [`Client::on_sample`](crate::Client::on_sample). See [`client`](crate::client#handlers-of-one-request).
        pub fn on_sample<F, Fut>(mut self, handle: F) -> Self
        where
            F: Fn(crate::client::Question<pintle_types::schema::CreateMessageParams>) -> Fut
                + Send
                + Sync
                + 'static,
            Fut: Future<Output: crate::client::IntoReply<pintle_types::schema::CreateMessageResult>>
                + Send
                + 'static,
        {
            self.options.questions_mut().sample = Some(crate::client::asking::handler(handle));
            self
        }
    };
}
pub(in crate::client) use request_options;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn meta(value: serde_json::Value) -> Meta {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn metadata_of_the_request_overrides_that_of_the_params_and_of_the_connection() {
        let mut options = RequestOptions::for_tests();
        let params: RawObject = r#"{"_meta":{"b":2,"c":2},"x":1}"#.parse().unwrap();
        assert_eq!(options.with_meta(params.clone(), None).unwrap().as_str(), params.as_str());
        options.meta = Some(meta(json!({"c": 3})));
        let default = meta(json!({"a": 1, "b": 1, "c": 1}));
        let merged = options.with_meta(params, Some(&default)).unwrap();
        assert_eq!(merged.get("_meta"), Some(r#"{"a":1,"b":2,"c":3}"#));
        assert_eq!(merged.get("x"), Some("1"));
        let wrong: RawObject = r#"{"_meta":7}"#.parse().unwrap();
        assert!(options.with_meta(wrong, None).unwrap_err().to_string().contains("`_meta`"));
    }

    impl RequestOptions {
        fn for_tests() -> Self {
            Self {
                timeout: Duration::ZERO,
                max_timeout: Duration::ZERO,
                extends: false,
                progress: false,
                on_progress: None,
                on_log: None,
                log_level: None,
                meta: None,
                handlers: None,
                suspends: false,
                on_notification: None,
                result_use: ResultUse::Caller,
                unresolved: None,
                looked_up: None,
                batch_entry: None,
            }
        }
    }
}
