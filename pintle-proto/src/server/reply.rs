use std::sync::Arc;

use pintle_types::{RequestId, RpcError};

use super::Finished;
use crate::print;

/// What a call was answered with, but for the id: it can be given again to whoever asks the same.
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
    /// A reply that was kept somewhere.
    pub fn new(is_error: bool, body: impl Into<Arc<str>>) -> Self {
        Self { is_error, body: body.into() }
    }
}

impl Finished {
    /// The reply without the id that it was printed with.
    pub fn reply(&self, id: &RequestId) -> Reply {
        let mut head = Vec::new();
        print::open_result(&mut head, id);
        // `error` is one letter shorter than `result`.
        let start = head.len() - usize::from(self.error.is_some());
        let body = self.bytes.get(start..self.bytes.len().saturating_sub(1)).unwrap_or_default();
        Reply::new(self.error.is_some(), String::from_utf8_lossy(body))
    }
}

/// Prints it behind the head of a result, or says what error it is.
pub(super) fn replied(reply: &Reply, out: &mut Vec<u8>) -> Result<(), RpcError> {
    if reply.is_error {
        let error = serde_json::from_str(&reply.body);
        return Err(error.unwrap_or_else(|_| RpcError::internal("an earlier reply that cannot be read")));
    }
    out.extend_from_slice(reply.body.as_bytes());
    Ok(())
}
