use std::sync::Arc;

use pintle_types::{RequestId, RpcError};

use super::{Finished, print};

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
