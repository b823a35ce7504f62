use std::fmt;

use pintle_types::RequestId;

/// A violation of the protocol by a peer.
///
/// It is reported in the log and to the caller whose request failed because of it. It is never sent to the peer, which
/// receives an `RpcError`.
///
/// ```
/// use pintle_proto::Violation;
///
/// let violation = Violation::UnknownResultType { method: "tools/list".into(), result_type: "later".into() };
/// assert_eq!(
///     violation.to_string(),
///     "`tools/list` returned the unknown result type `later`, which no declared extension defines"
/// );
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Violation {
    /// Bytes that are not a JSON-RPC message.
    NotAMessage {
        /// The reason, as the parser reports it.
        reason: Box<str>,
    },
    /// A batch, in a revision without batches.
    Batch,
    /// A request from a server, in a revision in which only clients send requests.
    UnwelcomeRequest {
        /// The method of the request.
        method: Box<str>,
    },
    /// An error response without an id, which cannot be assigned to a request.
    AnonymousError {
        /// The error, as text.
        reason: Box<str>,
    },
    /// A response that is malformed.
    MalformedAnswer {
        /// The id of the request.
        id: RequestId,
        /// The reason, as the parser reports it.
        reason: Box<str>,
    },
    /// A result that does not have the shape that its method requires.
    MalformedResult {
        /// The method of the request.
        method: Box<str>,
        /// The fault of the result.
        reason: Box<str>,
    },
    /// A `resultType` that is defined neither by the protocol nor by an extension that this client declared.
    UnknownResultType {
        /// The method of the request.
        method: Box<str>,
        /// The `resultType`.
        result_type: Box<str>,
    },
    /// An `input_required` result for a method that does not allow it.
    InputNotAllowed {
        /// The method of the request.
        method: Box<str>,
    },
    /// An `input_required` result with neither questions nor a state.
    NothingAsked {
        /// The method of the request.
        method: Box<str>,
    },
    /// More questions in one round than the limit allows.
    TooManyQuestions {
        /// The limit.
        limit: usize,
    },
    /// A question with a method that is not one of the three allowed.
    UnknownQuestion {
        /// The key of the question.
        key: Box<str>,
        /// The method of the question.
        method: Box<str>,
    },
    /// A question that requires a capability which the client did not declare.
    UndeclaredQuestion {
        /// The key of the question.
        key: Box<str>,
        /// The capability.
        capability: &'static str,
    },
    /// The server refused, twice, a revision that it lists as supported.
    ListedButRefused {
        /// The revision.
        revision: Box<str>,
    },
    /// A response to `initialize` that names a revision without a handshake.
    HandshakeOnStateless {
        /// The revision.
        revision: Box<str>,
    },
    /// A response to `server/discover` that does not list revisions.
    NoRevisionsListed,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAMessage { reason } => write!(f, "not a message: {reason}"),
            Self::Batch => f.write_str("a batch of messages, which this revision does not support"),
            Self::UnwelcomeRequest { method } => {
                write!(
                    f,
                    "a request `{method}` from the server, which may not send requests in this revision"
                )
            }
            Self::AnonymousError { reason } => write!(f, "an error without an `id`: {reason}"),
            Self::MalformedAnswer { id, reason } => {
                write!(f, "the response to request {id} is malformed: {reason}")
            }
            Self::MalformedResult { method, reason } => {
                write!(f, "the result of `{method}` is malformed: {reason}")
            }
            Self::UnknownResultType { method, result_type } => write!(
                f,
                "`{method}` returned the unknown result type `{result_type}`, which no declared extension \
                 defines"
            ),
            Self::InputNotAllowed { method } => write!(
                f,
                "`{method}` returned `input_required`, which only `tools/call`, `prompts/get` and \
                 `resources/read` may return"
            ),
            Self::NothingAsked { method } => {
                write!(
                    f,
                    "`{method}` returned `input_required` with neither `inputRequests` nor `requestState`"
                )
            }
            Self::TooManyQuestions { limit } => write!(f, "more than {limit} questions in one round"),
            Self::UnknownQuestion { key, method } => {
                write!(f, "the question `{key}` has the method `{method}`, which is not allowed")
            }
            Self::UndeclaredQuestion { key, capability } => {
                write!(
                    f,
                    "the question `{key}` requires the capability `{capability}`, which the client did not declare"
                )
            }
            Self::ListedButRefused { revision } => {
                write!(f, "the server lists revision `{revision}` as supported but refuses it")
            }
            Self::HandshakeOnStateless { revision } => {
                write!(f, "the response to `initialize` names revision `{revision}`, which has no handshake")
            }
            Self::NoRevisionsListed => {
                f.write_str("the response to `server/discover` has no `supportedVersions`")
            }
        }
    }
}

impl std::error::Error for Violation {}
