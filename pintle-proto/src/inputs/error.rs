use std::fmt;

use pintle_types::{
    ErrorCode, RpcError,
    schema::{ClientCapabilities, MissingCapabilityData},
};

use crate::revision::Unsayable;

/// The error for a question that cannot be asked or was not answered.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum AskError {
    /// The client did not declare the capability to answer the question.
    CannotAnswer {
        /// The required capabilities.
        required: Box<ClientCapabilities>,
    },
    /// The client responded with an error.
    Refused(RpcError),
    /// The client's revision cannot express the question.
    Unsayable(Unsayable),
    /// The question cannot be serialized as JSON.
    Unprintable {
        /// The error of the serializer.
        reason: String,
    },
    /// The question is invalid.
    BadQuestion {
        /// The reason.
        reason: String,
    },
    /// Two different questions have the same key.
    KeyReused {
        /// The key.
        key: String,
    },
    /// The answer does not have the shape that the question requires.
    BadAnswer {
        /// The key of the question.
        key: String,
        /// The reason.
        reason: String,
    },
    /// The maximum number of rounds or questions of a call is reached.
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// Handlers of this method cannot ask questions.
    NotHere {
        /// The method.
        method: String,
    },
    /// The client has no session, and without one there are only the questions of the protocol.
    NeedsSession {
        /// The method of the request.
        method: String,
    },
    /// The client has no open stream on which the question could be sent.
    Unreachable,
    /// The client did not answer in time.
    TimedOut {
        /// The timeout, in milliseconds.
        after_ms: u64,
    },
    /// The answer may have reached another process, which could not pass it on.
    AnswerLost,
    /// The call has ended.
    CallOver,
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CannotAnswer { required } => {
                let required = serde_json::to_string(required).unwrap_or_default();
                write!(
                    f,
                    "the client did not declare `{required}`, which the call needs: use a client that does"
                )
            }
            Self::Refused(error) => write!(f, "the client refused: {error}"),
            Self::Unsayable(unsayable) => unsayable.fmt(f),
            Self::Unprintable { reason } => write!(f, "the question cannot be serialized: {reason}"),
            Self::BadQuestion { reason } => f.write_str(reason),
            Self::KeyReused { key } => {
                write!(
                    f,
                    "the key `{key}` is already used for another question: give each question its own key"
                )
            }
            Self::BadAnswer { key, reason } => write!(f, "the answer to `{key}` is invalid: {reason}"),
            Self::TooMany { limit } => {
                write!(f, "the call has already asked {limit} times: raise the limit or ask less")
            }
            Self::NotHere { method } => write!(
                f,
                "a handler of `{method}` cannot ask questions: only those of `tools/call`, `prompts/get` and `resources/read` can"
            ),
            Self::NeedsSession { method } => write!(
                f,
                "`{method}` cannot be sent to a client without a session: only elicitation, sampling and roots can; check `Cx::session` first"
            ),
            Self::Unreachable => f.write_str(
                "the client has no open stream to receive the question: accept event streams in the client",
            ),
            Self::TimedOut { after_ms } => {
                let (seconds, rest) = (after_ms / 1000, after_ms % 1000);
                let after = if rest == 0 { format!("{seconds} s") } else { format!("{after_ms} ms") };
                write!(f, "the client did not answer within {after}: call again when the user can answer")
            }
            Self::AnswerLost => f.write_str(
                "the answer may have been lost between the processes of the server: make the call again if it is safe to repeat",
            ),
            Self::CallOver => f.write_str("the call has ended: ask before it ends"),
        }
    }
}

impl std::error::Error for AskError {}

impl From<AskError> for RpcError {
    fn from(error: AskError) -> Self {
        let reason = error.to_string();
        match error {
            AskError::CannotAnswer { required } => Self::new(ErrorCode::MISSING_CLIENT_CAPABILITY, reason)
                .with_data(&MissingCapabilityData::new(*required)),
            AskError::BadAnswer { .. } => Self::invalid_params(reason),
            _ => Self::internal(reason),
        }
    }
}
