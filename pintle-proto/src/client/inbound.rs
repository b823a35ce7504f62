use std::fmt;

use pintle_types::{Notification, RawObject, RequestId, Response, RpcError};

use super::reading::Outcome;
use crate::{Change, Violation};

/// What a message from the server means.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum Inbound {
    /// A request of ours has ended.
    Answer {
        /// Which.
        id: RequestId,
        /// How. Results and errors are in canonical form.
        outcome: Outcome,
    },
    /// The server wants to know something: answer with [`Engine::reply`](super::Engine::reply).
    Question(Question),
    /// The server no longer wants to know.
    Withdrawn {
        /// Which question.
        id: RequestId,
    },
    /// Send this back at once; nobody else need know.
    Reply(Response),
    /// A request of ours goes on.
    Progress {
        /// Which.
        id: RequestId,
        /// How far it is, of how much, and what is being done.
        params: RawObject,
    },
    /// The server says something to whoever reads logs.
    Log(RawObject),
    /// Something of the server's has changed.
    Change {
        /// What.
        change: Change,
        /// The `subscriptions/listen` that it belongs to. In a session changes belong to nothing.
        subscription: Option<RequestId>,
    },
    /// A `subscriptions/listen` is in effect.
    Acknowledged {
        /// Which.
        subscription: RequestId,
        /// What the server will tell of; compare it with what was wished for.
        granted: RawObject,
    },
    /// A `subscriptions/listen` is over, by the server's doing.
    Ended {
        /// Which.
        subscription: RequestId,
        /// Why.
        end: End,
    },
    /// A notification that the protocol leaves to the application, or to an extension.
    Notification {
        /// It, in canonical form.
        notification: Notification,
        /// The `subscriptions/listen` that it belongs to, if it names one.
        subscription: Option<RequestId>,
    },
    /// Nothing to do; the reason is for the log.
    Ignored(Ignored),
    /// The server broke the protocol, and no request of ours is spoiled by it.
    Violation(Violation),
}

/// Something that a server of the session era asks its client.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// What the answer will be marked with.
    pub id: RequestId,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: Box<str>,
    /// What exactly is asked, in canonical form.
    pub params: RawObject,
}

/// Why a subscription is over.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// The server ended it, and said so.
    Graceful,
    /// The server would not have it, or failed.
    Error(RpcError),
}

/// Why a message was ignored.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ignored {
    /// An answer to a request that is no longer waited for: it was answered, cancelled or timed out.
    LateAnswer(RequestId),
    /// An answer to a request that was never sent.
    UnknownAnswer(RequestId),
    /// An answer that does not say what to.
    AnonymousAnswer,
    /// Progress of a request that is not in flight, or that did not ask for it.
    StrayProgress,
    /// Progress that does not go forward.
    BackwardProgress(RequestId),
    /// A log message that nobody asked for.
    UnaskedLog,
    /// A change that belongs to no subscription of ours.
    UnknownSubscription,
    /// A change before the acknowledgement of its subscription.
    NotAcknowledged(RequestId),
    /// A change of a kind that the server did not say it would tell of.
    NotGranted(RequestId),
    /// The cancellation of something that is not there.
    StrayCancel,
    /// A notification whose params do not fit.
    Malformed(Box<str>),
    /// A notification before the opening is done.
    TooEarly(Box<str>),
    /// Bytes that are no message, as of a server that prints to its standard output.
    Noise(Box<str>),
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LateAnswer(id) => write!(f, "an answer to request {id}, which is no longer waited for"),
            Self::UnknownAnswer(id) => write!(f, "an answer to request {id}, which was never sent"),
            Self::AnonymousAnswer => f.write_str("an answer without an `id`"),
            Self::StrayProgress => f.write_str("progress of nothing that is in flight"),
            Self::BackwardProgress(id) => write!(f, "progress of request {id} that does not increase"),
            Self::UnaskedLog => f.write_str("a log message, though no request in flight asked for any"),
            Self::UnknownSubscription => f.write_str("a change that belongs to no subscription"),
            Self::NotAcknowledged(id) => write!(f, "a change before subscription {id} was acknowledged"),
            Self::NotGranted(id) => write!(f, "a change that was not granted to subscription {id}"),
            Self::StrayCancel => f.write_str("the cancellation of nothing that is in flight"),
            Self::Malformed(method) => write!(f, "`{method}` with params that do not fit"),
            Self::TooEarly(method) => write!(f, "`{method}` before the opening is done"),
            Self::Noise(reason) => write!(f, "bytes that are no message: {reason}"),
        }
    }
}
