//! One message of ours, and all that comes back for it.

use std::{
    future::{Future as _, poll_fn},
    ops::Deref,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use pintle_proto::http::{MCP_SESSION_ID, Probed, Streams};
use pintle_types::{ErrorCode, Message, RequestId, RpcError};
use tokio::time::timeout;

use super::{
    session::{HttpSession, TransportEvent},
    stream::EventReader,
};
use crate::{
    client::http::{
        connect::{AnswerLimit, CollectError, ResponseBody},
        fetch::{PreparedRequest, cause, drain},
    },
    transport::{Delivery, Failed},
};

/// The purpose of a POST.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::client::http) enum Purpose {
    /// A request.
    Request,
    /// The request that opens a session.
    Initialize,
    /// `notifications/initialized`.
    Initialized,
    /// Another notification, or a reply.
    Tell,
}

/// A POST to be sent.
#[derive(Debug)]
pub(in crate::client::http) struct OutgoingPost {
    pub(in crate::client::http) ask: PreparedRequest,
    pub(in crate::client::http) purpose: Purpose,
    pub(in crate::client::http) requests: Ids,
}

/// The ids of the requests in a POST. One, the usual case, needs no list.
#[derive(Debug)]
pub(in crate::client::http) enum Ids {
    One(RequestId),
    Several(Vec<RequestId>),
}

impl Ids {
    pub(in crate::client::http) fn of(messages: &[Message]) -> Self {
        if let [Message::Request(request)] = messages {
            return Self::One(request.id.clone());
        }
        let ids = messages.iter().filter_map(|message| match message {
            Message::Request(request) => Some(request.id.clone()),
            _ => None,
        });
        Self::Several(ids.collect())
    }
}

impl Deref for Ids {
    type Target = [RequestId];

    fn deref(&self) -> &[RequestId] {
        match self {
            Self::One(id) => std::slice::from_ref(id),
            Self::Several(ids) => ids,
        }
    }
}

/// Sends a notification or a reply.
pub(in crate::client::http) async fn tell(line: Arc<HttpSession>, post: OutgoingPost) {
    let OutgoingPost { ask, purpose, .. } = post;
    let wait = line.wire.limits.head_wait;
    let delivered = timeout(wait, deliver(&line, &ask)).await;
    let taken = match delivered.unwrap_or_else(|_| Err(Failed::new("no answer in time"))) {
        Ok(()) => true,
        Err(failed) => {
            tracing::debug!(what = %ask.what, %failed, "a message was not taken");
            false
        }
    };
    if purpose == Purpose::Initialized {
        line.tell(TransportEvent::Initialized { taken }).await;
    }
}

/// Sends requests, and reads their response to its end.
pub(in crate::client::http) async fn ask(line: Arc<HttpSession>, post: OutgoingPost) -> ExchangeResult {
    let OutgoingPost { ask, purpose, requests } = post;
    let came = {
        let mut running = pin!(exchange(&line, &ask, purpose, &requests));
        // What authorizes and sends requests may be somebody's own, and the task is that of the whole connection.
        poll_fn(|cx| {
            let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx)));
            polled.unwrap_or_else(|_| {
                Poll::Ready(Err(Failed::new("what authorizes or sends requests panicked")))
            })
        })
        .await
    };
    ExchangeResult { requests, came }
}

/// The end of the response to a POST.
#[derive(Debug)]
pub(in crate::client::http) struct ExchangeResult {
    pub(in crate::client::http) requests: Ids,
    pub(in crate::client::http) came: Result<Received, Failed>,
}

/// The content of a response.
#[derive(Debug)]
pub(in crate::client::http) enum Received {
    /// One message. If it is not the answer, there is none.
    Message(Bytes),
    /// An event stream, whose messages were delivered. If the answer was not among them, there is none.
    All,
    /// Nothing: the answer comes on the stream of HTTP+SSE.
    Elsewhere,
}

async fn exchange(
    line: &Arc<HttpSession>,
    ask: &PreparedRequest,
    purpose: Purpose,
    requests: &[RequestId],
) -> Result<Received, Failed> {
    let headless = line.headless();
    let answer = line.wire.fetch(ask).await?;
    drop(headless);
    let (head, body) = answer.into_parts();
    // What is rare is boxed: else there would be room for it in the future of every call, which is moved.
    if !head.status.is_success() {
        return Err(Box::pin(refused(line, ask, purpose, head, body)).await);
    }
    if purpose == Purpose::Initialize {
        line.open_session(&head.headers)?;
    }
    match ContentKind::of(&head.headers) {
        _ if line.has_two_endpoints() => {
            Box::pin(drain(body)).await;
            Ok(Received::Elsewhere)
        }
        ContentKind::Json => {
            let bytes = body.collect(line.wire.answer.bytes).await;
            let bytes = bytes.map_err(|error| uncollected(ask, error, line.wire.answer))?;
            Ok(Received::Message(bytes))
        }
        ContentKind::Events => {
            let mut reader = EventReader::new(line.clone());
            let resumable = line.revision().is_some_and(|revision| Streams::of(revision).resumable);
            let reading = reader.read_to_answer(ask, body, requests, resumable);
            Box::pin(reading).await.map(|()| Received::All)
        }
        ContentKind::Other(kind) => {
            Box::pin(drain(body)).await;
            let (address, what, status) = (&ask.address, &ask.what, head.status.as_u16());
            let came = kind.map_or("nothing".into(), |kind| format!("content of type `{kind}`"));
            let mut failed = Failed::new(format!(
                "`{address}` answered `{what}` with {came}: check that the URL is that of an MCP endpoint"
            ));
            failed.status = Some(status);
            failed.probed = Probed::Answered;
            Err(failed)
        }
    }
}

async fn deliver(line: &HttpSession, ask: &PreparedRequest) -> Result<(), Failed> {
    let answer = line.wire.fetch(ask).await?;
    let (head, body) = answer.into_parts();
    if head.status.is_success() {
        // Whatever it is: some say `{}`.
        drain(body).await;
        return Ok(());
    }
    Err(refused(line, ask, Purpose::Tell, head, body).await)
}

async fn refused(
    line: &HttpSession,
    ask: &PreparedRequest,
    purpose: Purpose,
    head: http::response::Parts,
    body: ResponseBody,
) -> Failed {
    let mut failed = line.wire.refusal(ask, &head, body).await;
    let is_lost = match head.status {
        // "When a client receives HTTP 404 in response to a request containing an `MCP-Session-Id`, it MUST start a new
        // session" (Transports, Session Management).
        StatusCode::NOT_FOUND => true,
        // So do servers after the examples of the official TypeScript SDK.
        StatusCode::BAD_REQUEST => {
            purpose == Purpose::Request && !failed.error.as_ref().is_some_and(is_about_request)
        }
        _ => false,
    };
    if is_lost
        && ask.headers.contains_key(&MCP_SESSION_ID)
        && (head.status == StatusCode::NOT_FOUND || line.may_be_lost())
    {
        failed.delivery = Delivery::LostSession;
        line.tell(TransportEvent::Lost).await;
    }
    failed
}

/// Whether an error says what is wrong with a request, and nothing of its session.
fn is_about_request(error: &RpcError) -> bool {
    matches!(
        error.code,
        ErrorCode::PARSE_ERROR
            | ErrorCode::METHOD_NOT_FOUND
            | ErrorCode::INVALID_PARAMS
            | ErrorCode::INTERNAL_ERROR
            | ErrorCode::HEADER_MISMATCH
            | ErrorCode::MISSING_CLIENT_CAPABILITY
            | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
    )
}

/// The failure of a request whose response ended without an answer.
pub(in crate::client::http) fn unanswered() -> Failed {
    let mut failed = Failed::new(
        "the server's answer to the request ended without an answer in it: the server may have carried it out",
    );
    failed.status = Some(200);
    failed.probed = Probed::Answered;
    failed
}

fn uncollected(ask: &PreparedRequest, error: CollectError, limit: AnswerLimit) -> Failed {
    let PreparedRequest { address, what, .. } = ask;
    let is_too_long = matches!(error, CollectError::TooLong);
    let failed = Failed::new(match error {
        CollectError::TooLong => format!(
            "the answer of `{address}` to `{what}` is longer than {} bytes: ask for less, or raise {}",
            limit.bytes, limit.name
        ),
        CollectError::Broken(error) => format!(
            "the answer of `{address}` to `{what}` broke off: {}: the server may have carried it out",
            cause(&*error)
        ),
    });
    Failed { is_too_long, ..failed }
}

/// The content type of a response.
pub(in crate::client::http) enum ContentKind {
    Json,
    Events,
    Other(Option<String>),
}

impl ContentKind {
    pub(in crate::client::http) fn of(headers: &HeaderMap) -> Self {
        let Some(kind) = headers.get(CONTENT_TYPE) else { return Self::Other(None) };
        // As nearly all say it; the rest is looked at more closely.
        if kind.as_bytes() == b"application/json" {
            return Self::Json;
        }
        let text = kind.to_str().unwrap_or_default();
        let name = text.split(';').next().unwrap_or_default().trim();
        match name {
            _ if name.eq_ignore_ascii_case("application/json") => Self::Json,
            _ if name.eq_ignore_ascii_case("text/event-stream") => Self::Events,
            _ => Self::Other(Some(name.chars().take(80).collect())),
        }
    }
}
