//! Requests that are forwarded for the client of another connection.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use http::HeaderMap;
use pintle_proto::client::RequestOutcome;
use pintle_types::{
    RawObject,
    schema::{ClientCapabilities, LoggingLevel, LoggingMessageParams},
};

use super::{
    Connection,
    options::{ForwardEvent, RequestOptions, ResultUse},
};
use crate::{
    Error, Result,
    client::{
        Client, Report,
        asking::{QuestionHandler, refuse_questions},
        layer::Cx,
    },
    transport::PushDemand,
};

/// A request that is forwarded for another client. Nothing of it is parsed that need not be.
#[derive(Clone)]
#[non_exhaustive]
pub struct ForwardRequest {
    /// The method.
    pub method: Cow<'static, str>,
    /// The params in canonical shapes. The connection replaces what is its own in their `_meta`.
    pub params: RawObject,
    /// The capabilities of the other client, where they are declared with each request.
    pub capabilities: RawObject,
    /// Whether progress is requested.
    pub progress: bool,
    /// The level of log messages that is requested, where each request has its own.
    pub log_level: Option<LoggingLevel>,
    /// The headers of the other client that repeat arguments, or the name of a request of an extension. Those that this client knows
    /// are made anew.
    pub headers: HeaderMap,
    /// The handler of input requests in a session.
    pub questions: QuestionHandler,
}

impl ForwardRequest {
    /// Creates a request without progress and log messages, whose input requests are refused.
    pub fn new(method: impl Into<Cow<'static, str>>, params: RawObject) -> Self {
        Self {
            method: method.into(),
            params,
            capabilities: RawObject::empty(),
            progress: false,
            log_level: None,
            headers: HeaderMap::new(),
            questions: refuse_questions(),
        }
    }
}

impl fmt::Debug for ForwardRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

impl Connection {
    /// Sends a request of another client, and returns its result. Input requests of a server without sessions are a result, with
    /// the `resultType` `input_required`.
    ///
    /// It has no timeout, because it waits for the other client: drop it to cancel it. The cache is not used.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// # #[cfg(feature = "server")] {
    /// use pintle::{Client, Server, forward::ForwardRequest, server::tool, types::RawObject};
    ///
    /// let dice = Server::new("dice", "1.0.0").tool(tool("roll", || async { "4" }));
    /// let behind = Client::new("front", "1.0.0").connect(dice.in_process()?).await?;
    /// let params: RawObject = r#"{"name":"roll"}"#.parse().unwrap();
    /// let result = behind.forward(ForwardRequest::new("tools/call", params), |_| {}).await?;
    /// assert!(result.as_str().contains(r#""text":"4""#));
    /// # }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The server answered with an error, or the connection was lost.
    pub async fn forward(
        &self,
        forward: ForwardRequest,
        on_notification: impl FnMut(ForwardEvent) + Send + 'static,
    ) -> Result<RawObject> {
        let ForwardRequest { method, params, capabilities, progress, log_level, headers, questions } =
            forward;
        let mut options = RequestOptions::of(self);
        options.timeout = Duration::MAX;
        options.max_timeout = Duration::MAX;
        options.progress = progress;
        options.log_level = log_level;
        options.on_notification = Some(Arc::new(Mutex::new(on_notification)));
        let handlers = options.handlers_mut();
        handlers.questions.raw = Some(questions);
        handlers.capabilities = Some(capabilities);
        handlers.logs = true;
        handlers.headers = headers;
        options.result_use = ResultUse::Forwarded;
        self.send(method, params, options).await
    }

    /// Sends one round of a request that the layers have passed on.
    pub(super) async fn exchange_forwarded(&self, cx: &Cx, options: &RequestOptions) -> Result<RawObject> {
        let mut admission = self.admit(cx.method(), cx.params()).await?;
        match self.exchange_in_span(cx, cx.params(), options, &mut admission).await? {
            RequestOutcome::Complete(result) | RequestOutcome::Extension { result, .. } => Ok(result),
            // The other client answers them.
            RequestOutcome::InputRequired(asked) => Ok(asked.result),
            RequestOutcome::Error(error) | RequestOutcome::UrlRequired { error, .. } => {
                Err(Error::Rpc(error))
            }
            RequestOutcome::Violation(violation) => Err(Error::Protocol(violation)),
            _ => Err(Error::Decode(format!("`{}` was answered with something unknown", cx.method()))),
        }
    }

    /// Returns whether arguments are repeated in headers.
    pub fn mirrors(&self) -> bool {
        self.shared().server_facts().mirrors
    }

    /// Returns whether messages of the server arrive on the stream of the request that they belong to.
    pub fn has_streams(&self) -> bool {
        self.shared().has_streams.load(Ordering::Relaxed)
    }

    /// Returns the number of the current period without a gap in which the server's changes arrive; `None` if they do not, as over
    /// HTTP without a stream of the session. Without a session they are those of a subscription, which reports its gaps itself.
    pub fn change_period(&self) -> Option<u64> {
        if self.facts().pushes_changes { self.shared().push_period() } else { Some(0) }
    }
}

impl Client {
    /// Declares the capabilities of another client, whose questions this handler forwards.
    pub fn forwarding(mut self, capabilities: ClientCapabilities, questions: QuestionHandler) -> Self {
        self.settings.declared = Some(capabilities);
        self.settings.handlers.raw = Some(questions);
        self
    }

    /// Has log messages that belong to no request forwarded too.
    pub fn forwarding_logs(
        mut self,
        forward: impl Fn(&LoggingMessageParams) + Send + Sync + 'static,
    ) -> Self {
        let own = self.settings.on_log.take();
        self.on_log(move |message: Report<LoggingMessageParams>| {
            forward(&message.params);
            own.iter().for_each(|own| own(message.clone()));
        })
    }

    /// Has messages that belong to no request arrive from when they are wanted.
    pub fn defer_pushes(mut self, demand: PushDemand) -> Self {
        self.settings.push_demand = demand;
        self
    }
}
