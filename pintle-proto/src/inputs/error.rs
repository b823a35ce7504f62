use std::fmt;

use pintle_types::{
    ErrorCode, RpcError,
    schema::{ClientCapabilities, MissingCapabilityData},
};

use crate::revision::Unsayable;

/// Why a question cannot be asked, or its answer not be had.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum AskError {
    /// The client did not say that it can answer such a question.
    CannotAnswer {
        /// What it would have to declare.
        required: Box<ClientCapabilities>,
    },
    /// The client answered with an error: its user said no, or it could not.
    Refused(RpcError),
    /// The client's revision has no words for it.
    Unsayable(Unsayable),
    /// The question cannot be printed as JSON.
    Unprintable {
        /// Why.
        reason: String,
    },
    /// The question is none that the protocol has words for.
    BadQuestion {
        /// What is wrong with it.
        reason: String,
    },
    /// Two different questions under one key.
    KeyReused {
        /// The key.
        key: String,
    },
    /// The answer is not of the question's kind.
    BadAnswer {
        /// The question's key.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The call has gone through as many rounds, or asked as many questions, as it may.
    TooMany {
        /// How many that is.
        limit: usize,
    },
    /// The method is none of those whose handlers may ask.
    NotHere {
        /// The method.
        method: String,
    },
    /// The client holds no stream open that the question could be sent on.
    Unreachable,
    /// The client did not answer in time.
    TimedOut {
        /// How long it had, in milliseconds.
        after_ms: u64,
    },
    /// The call has ended; nobody is left to be asked.
    CallOver,
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CannotAnswer { required } => {
                let required = serde_json::to_string(required).unwrap_or_default();
                write!(f, "the client did not declare `{required}`: check with `can_*` before asking")
            }
            Self::Refused(error) => write!(f, "the client refused: {error}"),
            Self::Unsayable(unsayable) => unsayable.fmt(f),
            Self::Unprintable { reason } => write!(f, "the question cannot be printed: {reason}"),
            Self::BadQuestion { reason } => f.write_str(reason),
            Self::KeyReused { key } => {
                write!(
                    f,
                    "the key `{key}` stands for another question already: give each question a key of its own"
                )
            }
            Self::BadAnswer { key, reason } => write!(f, "the answer to `{key}` does not fit: {reason}"),
            Self::TooMany { limit } => {
                write!(f, "the call asked {limit} times already: raise the limit or ask less")
            }
            Self::NotHere { method } => write!(
                f,
                "a handler of `{method}` cannot ask: only those of `tools/call`, `prompts/get` and `resources/read` can"
            ),
            Self::Unreachable => f.write_str(
                "the client holds no stream open: it can be asked only on one, so take event streams",
            ),
            Self::TimedOut { after_ms } => {
                let (seconds, rest) = (after_ms / 1000, after_ms % 1000);
                let after = if rest == 0 { format!("{seconds} s") } else { format!("{after_ms} ms") };
                write!(f, "the client did not answer within {after}: call again when somebody can answer")
            }
            Self::CallOver => f.write_str("the call is over: ask before it ends"),
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
