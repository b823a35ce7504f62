use std::fmt;

use pintle_types::RequestId;

/// What a peer did that the protocol does not allow: one variant for each thing.
///
/// It is for the log and for the caller whose request it spoiled. It never crosses the wire: what a peer is told is an
/// `RpcError`.
///
/// ```
/// use pintle_proto::Violation;
///
/// let violation = Violation::UnknownResultType { method: "tools/list".into(), result_type: "later".into() };
/// assert_eq!(
///     violation.to_string(),
///     "`tools/list` was answered with the unknown result type `later`: no extension that was offered owns it"
/// );
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Violation {
    /// Bytes that are no JSON-RPC message.
    NotAMessage {
        /// What is wrong with them.
        reason: Box<str>,
    },
    /// An array of messages, in a revision that has none.
    Batch,
    /// A request where only the other side may ask.
    UnwelcomeRequest {
        /// What was asked.
        method: Box<str>,
    },
    /// An error without an id, so that nobody knows whom it is for.
    AnonymousError {
        /// What it said.
        reason: Box<str>,
    },
    /// An answer that is no JSON-RPC response.
    MalformedAnswer {
        /// The request that it answers.
        id: RequestId,
        /// What is wrong with it.
        reason: Box<str>,
    },
    /// A result that lacks what its method promises.
    MalformedResult {
        /// The method that was answered.
        method: Box<str>,
        /// What is wrong with it.
        reason: Box<str>,
    },
    /// A `resultType` that neither the protocol nor an extension of ours defines.
    UnknownResultType {
        /// The method that was answered.
        method: Box<str>,
        /// What it was answered with.
        result_type: Box<str>,
    },
    /// `input_required` in answer to a method that may not ask for input.
    InputNotAllowed {
        /// The method that was answered.
        method: Box<str>,
    },
    /// `input_required` that asks for nothing.
    NothingAsked {
        /// The method that was answered.
        method: Box<str>,
    },
    /// More questions in one round than anybody would answer.
    TooManyQuestions {
        /// How many there may be.
        limit: usize,
    },
    /// A question that is none of the three that can be asked.
    UnknownQuestion {
        /// The name that the question goes by.
        key: Box<str>,
        /// What was asked.
        method: Box<str>,
    },
    /// A question that the client never said it could answer.
    UndeclaredQuestion {
        /// The name that the question goes by.
        key: Box<str>,
        /// The capability that would have allowed it.
        capability: &'static str,
    },
    /// The server refused a revision that it lists as supported, twice.
    ListedButRefused {
        /// The revision.
        revision: Box<str>,
    },
    /// A handshake that ended on a revision without handshakes.
    HandshakeOnStateless {
        /// The revision.
        revision: Box<str>,
    },
    /// An answer to `server/discover` that does not list revisions.
    NoRevisionsListed,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAMessage { reason } => write!(f, "not a message: {reason}"),
            Self::Batch => f.write_str("an array of messages, which this revision does not have"),
            Self::UnwelcomeRequest { method } => {
                write!(f, "a request, `{method}`, from a server that may not send any in this revision")
            }
            Self::AnonymousError { reason } => write!(f, "an error without an `id`: {reason}"),
            Self::MalformedAnswer { id, reason } => {
                write!(f, "the answer to request {id} is no response: {reason}")
            }
            Self::MalformedResult { method, reason } => {
                write!(f, "the result of `{method}` is malformed: {reason}")
            }
            Self::UnknownResultType { method, result_type } => write!(
                f,
                "`{method}` was answered with the unknown result type `{result_type}`: no extension that was \
                 offered owns it"
            ),
            Self::InputNotAllowed { method } => write!(
                f,
                "`{method}` was answered with `input_required`: only `tools/call`, `prompts/get` and \
                 `resources/read` may be"
            ),
            Self::NothingAsked { method } => {
                write!(
                    f,
                    "`{method}` was answered with `input_required` that has no `inputRequests` and no `requestState`"
                )
            }
            Self::TooManyQuestions { limit } => write!(f, "more than {limit} questions in one round"),
            Self::UnknownQuestion { key, method } => {
                write!(f, "the question `{key}` asks for `{method}`, which cannot be asked")
            }
            Self::UndeclaredQuestion { key, capability } => {
                write!(f, "the question `{key}` needs the capability `{capability}`, which was not declared")
            }
            Self::ListedButRefused { revision } => {
                write!(f, "the server lists revision `{revision}` as supported and refuses it")
            }
            Self::HandshakeOnStateless { revision } => {
                write!(f, "`initialize` was answered with revision `{revision}`, which has no handshake")
            }
            Self::NoRevisionsListed => {
                f.write_str("the answer to `server/discover` has no `supportedVersions`")
            }
        }
    }
}

impl std::error::Error for Violation {}
