use std::{
    collections::HashMap,
    fmt,
    future::Future,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use pintle::{
    Error, Result,
    client::http::{Limits, Proxy, Requests},
};
use serde::de::DeserializeOwned;

use super::reach::Reach;

/// Bytes of an answer. Metadata with every option there is has a tenth of it.
const ANSWER: usize = 256 << 10;
/// Redirects of a request for metadata. Requests with secrets follow none.
const REDIRECTS: usize = 3;

/// Sends the requests of a login.
///
/// [`Network`] does it by default. Bring your own for what that does not have: certificates, other proxies, a recording.
pub trait Web: Send + Sync + 'static {
    /// Sends a request and reads its answer. It must follow no redirect, and connect only to addresses that `reach`
    /// allows.
    fn send(
        &self,
        request: Request<Bytes>,
        reach: Reach,
    ) -> impl Future<Output = Result<Response<Bytes>>> + Send;

    /// The addresses that a host's name leads to; none if that is not to be known.
    fn addresses(&self, host: &str) -> impl Future<Output = Vec<IpAddr>> + Send;
}

/// The network, through [`pintle`]'s own HTTP client.
#[derive(Debug)]
pub struct Network {
    proxy: Proxy,
    /// One for each kind of server that there is: three at most.
    clients: Mutex<HashMap<Reach, Arc<Requests>>>,
}

impl Network {
    /// Through the proxies that the environment names.
    pub fn new() -> Self {
        Self::through(Proxy::system())
    }

    /// Through this proxy.
    pub fn through(proxy: Proxy) -> Self {
        Self { proxy, clients: Mutex::default() }
    }
}

impl Default for Network {
    fn default() -> Self {
        Self::new()
    }
}

impl Web for Network {
    async fn send(&self, request: Request<Bytes>, reach: Reach) -> Result<Response<Bytes>> {
        let client = {
            let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
            let make = || {
                let mut limits = Limits::default();
                limits.answer = Some(ANSWER);
                let requests = Requests::new().limits(limits).proxy(self.proxy.clone());
                Arc::new(requests.only(move |address| reach.allows(address)))
            };
            clients.entry(reach).or_insert_with(make).clone()
        };
        client.send(request).await
    }

    async fn addresses(&self, host: &str) -> Vec<IpAddr> {
        let found = tokio::net::lookup_host((host, 443)).await;
        found.into_iter().flatten().map(|address| address.ip()).collect()
    }
}

type Sending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A [`Web`] of any type.
pub(crate) trait AnyWeb: Send + Sync {
    fn send(&self, request: Request<Bytes>, reach: Reach) -> Sending<'_, Result<Response<Bytes>>>;
    fn addresses<'a>(&'a self, host: &'a str) -> Sending<'a, Vec<IpAddr>>;
}

impl<W: Web> AnyWeb for W {
    fn send(&self, request: Request<Bytes>, reach: Reach) -> Sending<'_, Result<Response<Bytes>>> {
        Box::pin(Web::send(self, request, reach))
    }

    fn addresses<'a>(&'a self, host: &'a str) -> Sending<'a, Vec<IpAddr>> {
        Box::pin(Web::addresses(self, host))
    }
}

/// The web, as far as it may be reached on behalf of one server.
#[derive(Clone, Copy)]
pub(crate) struct Guarded<'a> {
    pub(crate) web: &'a dyn AnyWeb,
    pub(crate) reach: Reach,
}

/// What is at an address.
#[derive(Debug)]
pub(crate) enum Looked<T> {
    There(T),
    NotThere,
    /// Its server could not say: status 500 and above. Another address of it may do better.
    Failed(Error),
}

impl Guarded<'_> {
    /// The JSON at an address; `None` if there is none.
    pub(crate) async fn get<T: DeserializeOwned>(self, url: &str) -> Result<Option<T>> {
        match self.look(url).await? {
            Looked::There(found) => Ok(Some(found)),
            Looked::NotThere => Ok(None),
            Looked::Failed(error) => Err(error),
        }
    }

    /// The JSON at an address that is one of several.
    pub(crate) async fn look<T: DeserializeOwned>(self, url: &str) -> Result<Looked<T>> {
        let mut url = url.to_owned();
        for _ in 0..=REDIRECTS {
            let uri = self.reach.check(&url)?;
            let request = Request::get(uri.clone()).header(header::ACCEPT, "application/json");
            let answer = self.web.send(built(request.body(Bytes::new()))?, self.reach).await?;
            if answer.status().is_redirection()
                && let Some(to) = answer.headers().get(header::LOCATION).and_then(|to| to.to_str().ok())
            {
                url = if to.starts_with('/') && !to.starts_with("//") {
                    format!("{}{to}", super::address::origin(&uri))
                } else {
                    to.to_owned()
                };
                continue;
            }
            if answer.status().is_server_error() {
                return Ok(Looked::Failed(Error::Io(std::io::Error::other(format!(
                    "`{url}` answered with status {}: try again later",
                    answer.status().as_u16()
                )))));
            }
            // Not there, or something else is: a page that says so with status 200, for one.
            let found = Some(answer).filter(|answer| answer.status() == StatusCode::OK);
            let found = found.and_then(|answer| serde_json::from_slice(answer.body()).ok());
            return Ok(found.map_or(Looked::NotThere, Looked::There));
        }
        Err(Error::Refused(format!("`{url}` was reached by more than {REDIRECTS} redirects")))
    }

    /// Posts something, and returns whatever is answered.
    pub(crate) async fn post(
        self,
        url: &str,
        content_type: &str,
        headers: http::HeaderMap,
        body: String,
    ) -> Result<Response<Bytes>> {
        let uri = self.reach.check(url)?;
        let request = Request::builder().method(Method::POST).uri(uri);
        let mut request = built(request.body(Bytes::from(body)))?;
        *request.headers_mut() = headers;
        let accept = http::HeaderValue::from_static("application/json");
        request.headers_mut().insert(header::ACCEPT, accept);
        if let Ok(content_type) = content_type.parse() {
            request.headers_mut().insert(header::CONTENT_TYPE, content_type);
        }
        self.web.send(request, self.reach).await
    }
}

fn built(request: http::Result<Request<Bytes>>) -> Result<Request<Bytes>> {
    request.map_err(|error| Error::Misuse(error.to_string()))
}

impl fmt::Debug for Guarded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").field("reach", &self.reach).finish_non_exhaustive()
    }
}
