use std::fmt;

use pintle_types::{Notification, RawObject, RequestId, Response, RpcError};

use super::reading::RequestOutcome;
use crate::{Change, Violation};

/// A message from the server, interpreted.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum Inbound {
    /// A request has ended.
    Answer {
        /// The id of the request.
        id: RequestId,
        /// The outcome. Results and errors are in canonical form.
        outcome: RequestOutcome,
    },
    /// The server asks a question: answer it with [`Engine::reply`](super::Engine::reply).
    Question(ServerQuestion),
    /// The server cancelled a question.
    Withdrawn {
        /// The id of the question.
        id: RequestId,
    },
    /// A response to send back at once; the application is not involved.
    Reply(Response),
    /// A request has made progress.
    Progress {
        /// The id of the request.
        id: RequestId,
        /// The params of the notification: progress, total and message.
        params: RawObject,
    },
    /// The params of a log message from the server.
    Log(RawObject),
    /// Something on the server has changed.
    Change {
        /// The change.
        change: Change,
        /// The id of the `subscriptions/listen` request that it belongs to; `None` in a session.
        subscription: Option<RequestId>,
    },
    /// A subscription was acknowledged.
    Acknowledged {
        /// The id of the `subscriptions/listen` request.
        subscription: RequestId,
        /// The notifications that the server grants, which may be fewer than requested.
        granted: RawObject,
    },
    /// A subscription was ended by the server.
    Ended {
        /// The id of the `subscriptions/listen` request.
        subscription: RequestId,
        /// The reason.
        end: End,
    },
    /// A notification that is handled by the application or by an extension.
    Notification {
        /// The notification, in canonical form.
        notification: Notification,
        /// The id of the `subscriptions/listen` request that it belongs to, if it names one.
        subscription: Option<RequestId>,
    },
    /// A message that was ignored, with the reason for the log.
    Ignored(Ignored),
    /// The server violated the protocol, without ending a request.
    Violation(Violation),
}

/// A question from a server of the session era to its client.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct ServerQuestion {
    /// The id of the request, to answer it.
    pub id: RequestId,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list` or `ping`.
    pub method: Box<str>,
    /// The params of the request, in canonical form.
    pub params: RawObject,
}

/// The reason why a subscription ended.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// The server ended it gracefully.
    Graceful,
    /// The server refused it, or failed.
    Error(RpcError),
}

/// The reason why a message was ignored.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ignored {
    /// A response to a request that has ended: it was answered, cancelled or timed out.
    LateAnswer(RequestId),
    /// A response to a request that was never sent.
    UnknownAnswer(RequestId),
    /// A result without an id.
    AnonymousAnswer,
    /// Progress of a request that is not in flight, or that did not ask for it.
    StrayProgress,
    /// Progress that does not increase.
    BackwardProgress(RequestId),
    /// A log message that no request in flight asked for.
    UnaskedLog,
    /// A notification for an unknown subscription.
    UnknownSubscription,
    /// A change before the acknowledgement of its subscription.
    NotAcknowledged(RequestId),
    /// A change of a kind that the server did not grant.
    NotGranted(RequestId),
    /// A cancellation of a request that is not open.
    StrayCancel,
    /// A notification with invalid params.
    Malformed(Box<str>),
    /// A notification before the connection is open.
    TooEarly(Box<str>),
    /// Bytes that are not a message, for example of a server that prints to its standard output.
    Noise(Box<str>),
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LateAnswer(id) => write!(f, "a response to request {id}, which has ended"),
            Self::UnknownAnswer(id) => write!(f, "a response to request {id}, which was never sent"),
            Self::AnonymousAnswer => f.write_str("a response without an `id`"),
            Self::StrayProgress => f.write_str("progress for no request in flight"),
            Self::BackwardProgress(id) => write!(f, "progress for request {id} that does not increase"),
            Self::UnaskedLog => f.write_str("a log message that no request in flight asked for"),
            Self::UnknownSubscription => f.write_str("a notification for an unknown subscription"),
            Self::NotAcknowledged(id) => write!(f, "a change before subscription {id} was acknowledged"),
            Self::NotGranted(id) => write!(f, "a change that was not granted to subscription {id}"),
            Self::StrayCancel => f.write_str("a cancellation of no open request"),
            Self::Malformed(method) => write!(f, "`{method}` with invalid params"),
            Self::TooEarly(method) => write!(f, "`{method}` before the connection is open"),
            Self::Noise(reason) => write!(f, "bytes that are not a message: {reason}"),
        }
    }
}
