use std::{ops::Deref, sync::Arc};

use pintle_types::{ErrorCode, RawObject, RequestId, RpcError};

use super::{CacheHint, RelayedRound, print};

/// The outcome of a call, independent of the era.
#[non_exhaustive]
#[derive(Debug)]
pub enum Outcome {
    /// A result, in canonical shapes.
    Complete(Body),
    /// A result that may be cached.
    Cacheable(Body, CacheHint),
    /// The questions of this round, which could not be answered at once.
    InputRequired,
    /// The questions of another server, to which the call was relayed.
    Relayed(RelayedRound),
    /// The tool's arguments are invalid. The text is for the model.
    BadArguments(String),
    /// The resource does not exist.
    NotFound {
        /// The requested URI.
        uri: String,
    },
    /// The request itself failed.
    Failed(RpcError),
    /// The reply of an earlier use of the same state, under this request's id.
    Replied(Reply),
}

impl Outcome {
    /// Returns whether the call has failed: the request itself, its arguments, or the tool (`isError` in its result).
    ///
    /// ```
    /// use pintle_proto::server::Outcome;
    /// use pintle_types::{RpcError, schema::CallToolResult};
    ///
    /// assert!(!Outcome::Complete(CallToolResult::raw_text("42").into()).is_error());
    /// assert!(Outcome::BadArguments("`count` is missing".to_owned()).is_error());
    /// assert!(Outcome::Failed(RpcError::internal("no disk")).is_error());
    /// ```
    pub fn is_error(&self) -> bool {
        match self {
            Self::Complete(result) | Self::Cacheable(result, _) => has_failed(result),
            Self::BadArguments(_) | Self::NotFound { .. } | Self::Failed(_) => true,
            Self::Replied(reply) => {
                reply.is_error || reply.body.parse::<RawObject>().is_ok_and(|result| has_failed(&result))
            }
            Self::InputRequired | Self::Relayed(_) => false,
        }
    }

    /// Returns the capacity to reserve for the response. The usual one, of a tool, is exact, so that it becomes `Bytes`
    /// without an allocation.
    pub(super) fn room(&self, id: &RequestId) -> usize {
        match self {
            Self::Complete(Body::Own(body) | Body::Text(body)) | Self::Cacheable(Body::Own(body), _)
                if body.as_str().len() >= print::LARGE =>
            {
                256
            }
            Self::Complete(body) => print::room(id) + body.as_str().len(),
            Self::Cacheable(body, _) => body.as_str().len() + 256,
            _ => 512,
        }
    }
}

/// Returns whether a result is that of a tool that failed.
fn has_failed(result: &RawObject) -> bool {
    result.get("isError") == Some("true")
}

/// The result of a call.
#[non_exhaustive]
#[derive(Debug)]
pub enum Body {
    /// Created for this call.
    Own(RawObject),
    /// A tool's result that is a single text block, from [`CallToolResult::raw_text`]. It has the same shape in every
    /// revision, so it is not scanned for members to lower.
    ///
    /// [`CallToolResult::raw_text`]: pintle_types::schema::CallToolResult::raw_text
    Text(RawObject),
    /// Serialized once for many calls.
    Shared(Arc<RawObject>),
}

impl Deref for Body {
    type Target = RawObject;

    fn deref(&self) -> &RawObject {
        match self {
            Self::Own(object) | Self::Text(object) => object,
            Self::Shared(object) => object,
        }
    }
}

impl From<RawObject> for Body {
    fn from(object: RawObject) -> Self {
        Self::Own(object)
    }
}

impl From<Arc<RawObject>> for Body {
    fn from(object: Arc<RawObject>) -> Self {
        Self::Shared(object)
    }
}

/// The serialized response to a call.
#[non_exhaustive]
#[derive(Debug)]
pub struct Finished {
    /// The response, on one line, without the line terminator.
    pub bytes: Vec<u8>,
    /// The code, if it is an error, from which HTTP derives the status.
    pub error: Option<ErrorCode>,
}

/// The response to a call without its id, which can be sent again for a repeated request.
///
/// ```
/// use pintle_proto::server::Reply;
///
/// let reply = Reply::new(false, r#"{"content":[]}"#);
/// assert_eq!(&*reply.body, r#"{"content":[]}"#);
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reply {
    /// Whether it is an error.
    pub is_error: bool,
    /// The result or the error, as an object in JSON.
    pub body: Arc<str>,
}

impl Reply {
    /// Creates a reply that was stored.
    pub fn new(is_error: bool, body: impl Into<Arc<str>>) -> Self {
        Self { is_error, body: body.into() }
    }
}

impl Finished {
    /// Returns the reply, without the id of the request.
    pub fn reply(&self, id: &RequestId) -> Reply {
        let mut head = Vec::new();
        print::open_result(&mut head, id);
        // `error` is one byte shorter than `result`.
        let start = head.len() - usize::from(self.error.is_some());
        let body = self.bytes.get(start..self.bytes.len().saturating_sub(1)).unwrap_or_default();
        Reply::new(self.error.is_some(), String::from_utf8_lossy(body))
    }
}

/// Writes a reply after the prefix of a response, or returns it as an error.
pub(super) fn replied(reply: &Reply, out: &mut Vec<u8>) -> Result<(), RpcError> {
    if reply.is_error {
        let error = serde_json::from_str(&reply.body);
        return Err(error.unwrap_or_else(|_| RpcError::internal("the stored reply cannot be read")));
    }
    out.extend_from_slice(reply.body.as_bytes());
    Ok(())
}
