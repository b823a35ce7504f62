use http::{Extensions, HeaderMap, Method, Uri};
use pintle_proto::server::Outcome;
use pintle_types::RpcError;

use super::{Cx, FromCall};

/// What came with a request besides its message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Around {
    pub(crate) extensions: Extensions,
    /// What it looked like over HTTP.
    pub(crate) head: Option<HttpHead>,
}

/// The head of the HTTP request that brought a call: for handlers that read a header.
///
/// A handler takes it as an argument, or asks [`Cx::http`], which copies nothing.
///
/// ```
/// use pintle::server::{HttpHead, tool};
///
/// let agent = tool("agent", |head: HttpHead| async move {
///     let agent = head.headers.get("user-agent").and_then(|value| value.to_str().ok());
///     format!("You use {}.", agent.unwrap_or("something"))
/// });
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct HttpHead {
    /// The method.
    pub method: Method,
    /// The target, as the client wrote it.
    pub uri: Uri,
    /// The headers, all of them.
    pub headers: HeaderMap,
}

impl HttpHead {
    /// A head: for tests of what reads one.
    pub fn new(method: Method, uri: Uri, headers: HeaderMap) -> Self {
        Self { method, uri, headers }
    }
}

impl FromCall for HttpHead {
    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        cx.http().cloned().ok_or_else(|| {
            Outcome::Failed(RpcError::internal("this needs an HTTP request: call it over HTTP"))
        })
    }
}

/// The same, if the call came over HTTP.
impl FromCall for Option<HttpHead> {
    fn from_call(cx: &Cx) -> Result<Self, Outcome> {
        Ok(cx.http().cloned())
    }
}
