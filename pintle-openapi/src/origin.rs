use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response};
use pintle::client::http::Proxy;

use crate::{
    answer,
    client::ApiClient,
    operation::{Base, is_of_connection},
    request::Redaction,
};

/// A client of one origin, for requests that a program makes without a document, with the limits of an API: of time, size, redirects and
/// networks.
///
/// ```no_run
/// # async fn example() -> Result<(), String> {
/// use std::time::Duration;
///
/// use pintle_openapi::OriginClient;
///
/// let client = OriginClient::new("https://api.example.com", Duration::from_secs(10), 1 << 20)?;
/// let request = http::Request::get("https://api.example.com/status").body(bytes::Bytes::new()).unwrap();
/// println!("{:?}", client.fetch(request, &[]).await?.body());
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a client does nothing until a request is sent"]
pub struct OriginClient {
    base: Base,
    client: ApiClient,
}

impl OriginClient {
    /// Creates a client of a scheme, a host, and a port if there is one. An answer may take so long, and have so many bytes.
    ///
    /// Requests go to public addresses, and to private ones if the host is written as one or as `localhost`.
    ///
    /// # Errors
    ///
    /// The text is no origin.
    pub fn new(origin: &str, timeout: Duration, max_answer: usize) -> Result<Self, String> {
        let base = Base::parse(origin, true)?;
        Ok(Self { base, client: ApiClient::new(HeaderMap::new(), timeout, max_answer, Proxy::system()) })
    }

    /// Returns whether a header is that of a request, and not of its connection.
    pub fn sends(header: &HeaderName) -> bool {
        !is_of_connection(header)
    }

    /// Allows requests to private networks and to this machine.
    pub fn allow_private(mut self) -> Self {
        self.base.reach = None;
        self
    }

    /// Sends a request, and returns the answer if its status is 2xx. Redirects are followed as for an API.
    ///
    /// # Errors
    ///
    /// The reason why there is no such answer, with the beginning of what the server says, and without `secrets` and the query.
    pub async fn fetch(
        &self,
        request: Request<Bytes>,
        secrets: &[String],
    ) -> Result<Response<Bytes>, String> {
        let uri = request.uri();
        let origin = uri.scheme_str().zip(uri.authority()).map(|(scheme, host)| format!("{scheme}://{host}"));
        if origin.as_deref() != Some(&self.base.origin) {
            return Err(format!("the request is not one to `{}`", self.base.origin));
        }
        let reason = match self.client.send(&self.base, request).await {
            Ok(answer) if answer.status().is_success() => return Ok(answer),
            Ok(answer) => answer::failure(&answer, None),
            Err(reason) => reason,
        };
        Err(Redaction::of(secrets.iter().map(String::as_str)).apply(&reason))
    }
}
