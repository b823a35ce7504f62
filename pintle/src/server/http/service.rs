//! The `tower` service, and the way of a call through it.
//!
//! A stateless `tools/call`, file by file, with what is decided there. Paths without a crate are in `pintle/src/server`.
//!
//! | | file | function | decides |
//! |--:|---|---|---|
//! | 1 | `http/edge/acceptor.rs` | `Acceptor::run` | whether another connection is accepted; a task for it |
//! | 2 | `http/edge/connection.rs` | `serve` | HTTP/1 or 2; time limits of the head; when a shutdown closes it |
//! | 3 | `http/service.rs` | `Http::call` | nothing: splits the head from the body |
//! | 4 | `http/request_cx.rs` | `request_cx`, `respond`, `route` | the server, the principal, and the route by the head alone, with `open` of `pintle-proto/src/http/open.rs` |
//! | 5 | `http/edge/body.rs`, `content.rs` | `read_content` | size and pace of the body |
//! | 6 | `http/post.rs` | `admit`, `destination` | the envelope; `_meta`, read once (`Service::stamped`); the era, and whether the headers repeat the body (`pintle-proto/src/http/route.rs`) |
//! | 7 | `http/stateless/mod.rs` | `admit` | with `Service::admit_call`: params raised, method offered, answers and state opened; then the rights (`http/rights.rs`) |
//! | 8 | `core/driver/call_driver.rs` | `CallDriver::start` | nothing: creates the `Cx`, starts the stack of the snapshot, and catches its panics |
//! | 9 | `core/dispatch.rs` | `innermost`, `tool` | the entry by name; whether the caller sees it and may use it (`core/gate/admission.rs`); header arguments; the schema of the arguments. If the call has a `requestState`, `run_claimed` claims it |
//! | 10 | `core/driver/layer.rs`, `core/catalogue/tool.rs` | `Next::go` | the layers of the route, then the handler |
//! | 11 | `core/handler/mod.rs`, `extract.rs` | `Handler::call`, `from_call` | the arguments as a type; the handler's future is created |
//! | 12 | `core/driver/run.rs` | `HandlerRun::poll` | the timeout, panics, the end of a round |
//! | 13 | `core/handler/tool_future.rs` | `ToolFuture::poll` | polled by step 12: the handler runs; then its result as text, its schema and size |
//! | 14 | `http/stateless/mod.rs` | `run` | second visit: JSON or an event stream, by the first event or outcome |
//! | 15 | `pintle-proto/src/server/call.rs` | `Call::finish` | the response in the shapes of the client's revision (`finish.rs`, `print.rs`) |
//! | 16 | `http/edge/response.rs` | `json`, `events` | status and headers; hyper writes. Second visit of step 2: the write timeout |
//!
//! In a session, step 6 finds the session (`http/session/lookup.rs`) and step 7 is `session/conversation.rs` with `Engine::admit`. Step 14
//! is `session/exchange.rs`, which adds the concurrency limit, and streams through `session/channel.rs`.
//!
//! A call runs inside the future of its request. If it completes without an event, the response is JSON. Its first event, or a long
//! silence, makes the response an event stream: from then on the handler runs in a task, so that its timeout does not depend on the
//! reader, and the response body forwards its events.
//!
//! - A closed connection cancels stateless calls only. They are dropped with their request or stream. In a session the rest of the call
//!   becomes a task, and its events go to the event log. Calls that wait are in a `CallRegistry`: a shutdown waits for them, and then
//!   ends them with an error.
//! - Rights are checked once, after the message is parsed and before any of it runs, because only then can the response be a 403 that
//!   names the missing rights. A layer that authenticates inserts an `Authenticated` into the request; this crate knows rights by name
//!   and nothing of tokens.
//! - Each message is sent on one stream: those of a call on the stream of its response, changes on the newest GET stream, merged.

use std::{
    any::Any,
    convert::Infallible,
    fmt, io,
    sync::{Arc, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response, Version, request::Parts};

use super::{
    Body, RequestBody,
    edge::{content::Content, response::refused},
    request_cx::{Prepared, ResponseFuture, Source},
    session::id::SessionId,
    settings::HttpSettings,
    shared::HttpShared,
};
use crate::{Ended, Result, server::Server};

/// A server over HTTP: one `tower` service for clients of every revision.
///
/// Cheap to clone. Clones are handles of the same service, as those of a [`Server`] are of the same server: they share
/// sessions, calls and settings, and a setting that is changed on one applies to all from the next request on. Set the event
/// log and the session store before the first request.
///
/// Mount it wherever a `tower` service can be mounted, and wrap it in layers. Values that layers insert into the extensions of
/// a request reach the handlers.
///
/// ```
/// use http::Request;
/// use pintle::{Server, server::tool};
/// use tower_service::Service as _;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let mut http = Server::new("greeter", "1.0.0").tool(tool("greet", || async { "Hello!" })).http()?;
///
/// let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","_meta":{
///     "io.modelcontextprotocol/protocolVersion":"2026-07-28",
///     "io.modelcontextprotocol/clientCapabilities":{}}}}"#;
/// let request = Request::post("/mcp")
///     .header("host", "localhost")
///     .header("content-type", "application/json")
///     .header("accept", "application/json, text/event-stream")
///     .header("mcp-protocol-version", "2026-07-28")
///     .header("mcp-method", "tools/call")
///     .header("mcp-name", "greet")
///     .body(call.to_owned())
///     .expect("a request");
/// let response = http.call(request).await.expect("never fails");
/// assert_eq!(response.status(), 200);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Http(pub(super) Arc<HttpShared>);

impl Server {
    /// Returns a `tower` service that serves this server over HTTP, on one path for clients of every revision.
    ///
    /// # Errors
    ///
    /// Returns an error if a registration is invalid: see [`check`](Self::check).
    pub fn http(&self) -> Result<Http> {
        self.start()?;
        Ok(Http(Arc::new(HttpShared::new(HttpSettings::new(self)))))
    }
}

impl Http {
    pub(super) fn set(self, change: impl FnOnce(&mut HttpSettings)) -> Self {
        {
            let mut settings = self.0.settings.write().unwrap_or_else(PoisonError::into_inner);
            change(Arc::make_mut(&mut settings));
        }
        self
    }

    /// Returns whether no other process has the keys of states.
    #[doc(hidden)]
    pub fn seals_alone(&self) -> bool {
        self.settings().seals_alone
    }

    pub(super) fn settings(&self) -> Arc<HttpSettings> {
        self.0.settings()
    }

    /// Closes all notification streams. Subscriptions receive their final result; GET streams are closed without one. Calls
    /// in flight continue. [`close`](Self::close) refuses new calls as well.
    pub fn close_streams(&self) {
        self.0.change_hub.close();
    }

    /// Returns the number of sessions in this process.
    pub fn sessions(&self) -> usize {
        self.0.sessions.len()
    }

    /// Ends a session of this process: its calls are cancelled and its streams end. Returns `false` if this process has no
    /// session of that id.
    ///
    /// # Errors
    ///
    /// Returns an error if the [session store](Self::session_store) fails. The session has ended here, but other processes
    /// may still find it in the store.
    pub async fn end_session(&self, id: &str) -> io::Result<bool> {
        match SessionId::parse(id).and_then(|id| self.0.sessions.find(id)) {
            Some(session) => self.0.end(&session, Ended::Stopped).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Answers a request whose body was read already: this service, for endpoints that read the body themselves.
    ///
    /// Read the body with [`read_body`](super::read_body), or limit it in another way. Dropping the future has the effect of
    /// a closed connection.
    pub async fn answer(&self, head: Parts, body: Bytes) -> Response<Body> {
        let cx = match self.request_cx(head, None) {
            Prepared::Ready(cx) => Ok(cx),
            Prepared::Refused(refusal) => Err(refusal),
            Prepared::Pending(pending) => pending.await,
        };
        match cx {
            Ok(cx) => {
                let Ok(response) = cx.start(Source::<Body>::Read(Content::Bytes(body))).await;
                response
            }
            Err(refusal) => refused(&refusal, None),
        }
    }
}

impl<B> tower_service::Service<Request<B>> for Http
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let taken: Option<&RequestBody> = (&body as &dyn Any).downcast_ref();
        let address = taken.and_then(RequestBody::lazy_peer_address);
        // The request of an `HttpServer` is as it was on the wire.
        let on_wire = taken.is_some() && parts.version == Version::HTTP_11;
        match self.request_cx(parts, address) {
            Prepared::Ready(mut cx) => {
                cx.needs_host = on_wire;
                cx.start(Source::Unread(body))
            }
            Prepared::Refused(refusal) => Box::pin(std::future::ready(Ok(refused(&refusal, None)))),
            Prepared::Pending(pending) => Box::pin(async move {
                match pending.await {
                    Ok(mut cx) => {
                        cx.needs_host = on_wire;
                        cx.start(Source::Unread(body)).await
                    }
                    Err(refusal) => Ok(refused(&refusal, None)),
                }
            }),
        }
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_future_of_a_request_is_small() {
        let http = Server::new("s", "0").http().unwrap();
        let (parts, ()) = Request::post("/mcp").body(()).unwrap().into_parts();
        let Prepared::Ready(cx) = http.request_cx(parts, None) else { panic!("there is one server") };
        let future = cx.respond(Source::Unread(Body::empty()));
        // Larger blocks are not in the thread cache of the usual allocators.
        assert!(size_of_val(&future) <= 1000, "{}", size_of_val(&future));
    }
}
