//! Requests of clients to the server behind a relay: how they are sent, and what becomes of their questions and errors.

use std::{collections::BTreeMap, future::poll_fn, sync::Arc};

use pintle::{
    Error,
    forward::{Downstream, InputRequest, InputRequired},
    server::{Cx, Outcome},
    types::{RawObject, RpcError, keys, method, schema},
};

use super::{
    calls::{
        questions::RunningQuestions,
        upstream_call::{CallProgress, UpstreamCall, UpstreamRequest, deliver},
    },
    declared::DeclaredCapabilities,
    meta::without_meta,
    relay::Relay,
    tasks::session::{SessionTaskCall, TaskReport, TaskUse},
    upstream::failure::Failure,
};

/// A request of a client, and the relay that forwards it.
#[derive(Clone, Copy)]
pub(crate) struct RelayedRequest<'a> {
    pub(crate) relay: &'a Relay,
    pub(crate) cx: &'a Cx,
}

impl Relay {
    /// Returns the request of a call.
    pub(crate) fn request<'a>(&'a self, cx: &'a Cx) -> RelayedRequest<'a> {
        RelayedRequest { relay: self, cx }
    }
}

/// The metadata of a request that belongs to its connection.
const OF_CONNECTION: [&str; 5] =
    ["progressToken", keys::PROTOCOL_VERSION, keys::CLIENT_INFO, keys::CLIENT_CAPABILITIES, keys::LOG_LEVEL];

impl<'a> RelayedRequest<'a> {
    /// Returns the client side of the request.
    pub(crate) fn downstream(self) -> Downstream<'a> {
        Downstream::of(self.cx)
    }

    /// Returns the capabilities of the client that the server behind may use.
    pub(crate) fn capabilities(self) -> Arc<DeclaredCapabilities> {
        self.relay.inner.last_declared.of(&self.cx.peer().capabilities)
    }

    /// Returns the params without what belongs to the connection of the client.
    pub(crate) fn params(self) -> RawObject {
        let params = self.cx.params();
        let own = ["inputResponses", "requestState"];
        let params = match own.iter().any(|name| params.get(name).is_some()) {
            true => params.without(&own),
            false => params.clone(),
        };
        without_meta(params, &OF_CONNECTION)
    }

    /// Sends the request over the connection that it uses.
    pub(crate) async fn start(self, tasks: TaskUse) -> Result<UpstreamCall, RpcError> {
        self.start_as((self.cx.method(), &self.params()), &self.capabilities(), tasks).await
    }

    /// Sends a request over the connection of this one, for a client with these capabilities.
    pub(crate) async fn start_as(
        self,
        (method, params): (&str, &RawObject),
        declared: &DeclaredCapabilities,
        tasks: TaskUse,
    ) -> Result<UpstreamCall, RpcError> {
        let Self { relay, cx } = self;
        let params = relay.pass_hop(cx, params)?;
        let link = relay.inner.upstream.lease(cx, &declared.capabilities, relay.options.links).await?;
        link.settle().await;
        let logs = link.want_logs(cx.peer().log_level).await;
        let capabilities = declared.printed.clone();
        let method = method.to_owned();
        if !link.connection.revision().has_method(&method) {
            return Err(RpcError::method_not_found(&method));
        }
        let creates_task = tasks == TaskUse::Followed || (method == method::TOOLS_CALL && cx.is_detached());
        let tasks = link
            .has_session_tasks()
            .then(|| SessionTaskCall::of([&link.catalogue, &relay.inner.known], cx, &method, tasks))
            .flatten();
        if tasks.is_some() {
            link.want_pushes();
        }
        Ok(UpstreamCall::start(
            link,
            UpstreamRequest { method, params, capabilities, logs, tasks, creates_task, cx },
        ))
    }

    /// Sends a request to a server without sessions, for a client with these capabilities, and returns its result.
    pub(crate) async fn call_as(
        self,
        request: (&str, &RawObject),
        declared: &DeclaredCapabilities,
    ) -> Result<RawObject, Failure> {
        let mut call = self.start_as(request, declared, TaskUse::IfRequired).await?;
        loop {
            match call.next().await {
                CallProgress::Notification(notification) => Box::pin(deliver(self.cx, notification)).await,
                // Such a server sends no requests, and its tasks are results.
                CallProgress::Question(_) | CallProgress::Task(_) => {}
                CallProgress::Done(result) => return result.map_err(|error| self.failed(error)),
            }
        }
    }

    /// Waits for the result of a call to a server with sessions. Its questions are asked at once: its client has a session, or follows the
    /// call as a task.
    pub(crate) async fn finish(self, mut call: UpstreamCall) -> Result<Outcome, Failure> {
        let mut questions = RunningQuestions::default();
        loop {
            let next = poll_fn(|task| {
                questions.poll(task);
                call.poll_next(task)
            });
            match next.await {
                CallProgress::Notification(notification) => Box::pin(deliver(self.cx, notification)).await,
                CallProgress::Task(TaskReport::Status(message)) => self.downstream().status(message),
                CallProgress::Task(TaskReport::Created(_)) => {}
                CallProgress::Question(question) => questions.ask(self.cx, question),
                CallProgress::Done(Ok(result)) => return Ok(self.complete(result)),
                CallProgress::Done(Err(error)) => return Err(self.failed(error)),
            }
        }
    }

    /// Returns the outcome of a call that was completed.
    pub(crate) fn complete(self, result: RawObject) -> Outcome {
        let Self { relay, cx } = self;
        let foreign: &[&str] = match relay.inner.upstream.has_session_for(cx, relay.options.links.sharing) {
            // Lowering the result would do the same, and decode all of it.
            false if !cx.facts().result_types && result.get("resultType") == Some("\"complete\"") => {
                &["resultType"]
            }
            false => &[],
            // Members that mean something to clients without a session, and nothing to a server that has one.
            true => &["resultType", "ttlMs", "cacheScope"],
        };
        // This server adds its own name.
        Outcome::Complete(relay.inner.last_meta.without_server(result, foreign).into())
    }

    /// Returns the failure of a call. An error of the server behind is unchanged.
    pub(crate) fn failed(self, error: Error) -> Failure {
        Failure::of(error, || self.relay.backend())
    }

    /// Reads the questions of an `input_required` result.
    pub(crate) fn read_questions(self, result: &RawObject) -> Result<InputRequired, RpcError> {
        let unreadable = |error: serde_json::Error| {
            let backend = self.relay.backend();
            RpcError::internal(format!("the questions of `{backend}` cannot be read: {error}"))
        };
        let questions: Option<BTreeMap<String, schema::InputRequest>> =
            result.decode_member("inputRequests").map_err(unreadable)?;
        let state = result.decode_member("requestState").map_err(unreadable)?;
        let requests = questions.into_iter().flatten().map(|(key, request)| {
            let params = request.params_as::<RawObject>()?;
            Ok(InputRequest::new(key, request.method, params))
        });
        let requests = requests.collect::<Result<_, _>>().map_err(unreadable)?;
        let revision = self.relay.inner.upstream.primary().connection.revision();
        Ok(InputRequired::new(requests, state, revision))
    }
}
