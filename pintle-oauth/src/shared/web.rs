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

/// The limit of bytes of a response. Metadata with every option has a tenth of it.
const ANSWER: usize = 256 << 10;
/// The limit of redirects of a request for metadata. Requests with secrets follow none.
const REDIRECTS: usize = 3;

/// Sends the requests of a login.
///
/// [`Network`] is the default. Implement it for what that lacks, for example client certificates.
pub trait Web: Send + Sync + 'static {
    /// Sends a request and returns the response. It must not follow redirects, and connect only to addresses that `reach`
    /// allows.
    fn send(
        &self,
        request: Request<Bytes>,
        reach: Reach,
    ) -> impl Future<Output = Result<Response<Bytes>>> + Send;

    /// Resolves the name of a host. Returns no address if that fails.
    fn addresses(&self, host: &str) -> impl Future<Output = Vec<IpAddr>> + Send;
}

/// Sends requests with [`pintle`]'s HTTP client.
#[derive(Debug)]
pub struct Network {
    proxy: Proxy,
    /// One for each kind of server: at most three.
    clients: Mutex<HashMap<Reach, Arc<Requests>>>,
}

impl Network {
    /// Uses the proxies of the environment variables.
    pub fn new() -> Self {
        Self::with_proxy(Proxy::system())
    }

    /// Uses this proxy.
    pub fn with_proxy(proxy: Proxy) -> Self {
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

type WebFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A [`Web`] of any type.
pub(crate) trait AnyWeb: Send + Sync {
    fn send(&self, request: Request<Bytes>, reach: Reach) -> WebFuture<'_, Result<Response<Bytes>>>;
    fn addresses<'a>(&'a self, host: &'a str) -> WebFuture<'a, Vec<IpAddr>>;
}

impl<W: Web> AnyWeb for W {
    fn send(&self, request: Request<Bytes>, reach: Reach) -> WebFuture<'_, Result<Response<Bytes>>> {
        Box::pin(Web::send(self, request, reach))
    }

    fn addresses<'a>(&'a self, host: &'a str) -> WebFuture<'a, Vec<IpAddr>> {
        Box::pin(Web::addresses(self, host))
    }
}

/// A [`Web`] that is restricted to the reach of one server.
#[derive(Clone, Copy)]
pub(crate) struct Guarded<'a> {
    pub(crate) web: &'a dyn AnyWeb,
    pub(crate) reach: Reach,
}

/// The result of a request for a document.
#[derive(Debug)]
pub(crate) enum Lookup<T> {
    Found(T),
    NotFound,
    /// The server failed with status 500 or above. Another address may succeed.
    Failed(Error),
}

impl Guarded<'_> {
    /// Fetches the JSON at an address. Returns `None` if there is none.
    pub(crate) async fn get<T: DeserializeOwned>(self, url: &str) -> Result<Option<T>> {
        match self.look(url).await? {
            Lookup::Found(found) => Ok(Some(found)),
            Lookup::NotFound => Ok(None),
            Lookup::Failed(error) => Err(error),
        }
    }

    /// Fetches the JSON at one of several addresses.
    pub(crate) async fn look<T: DeserializeOwned>(self, url: &str) -> Result<Lookup<T>> {
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
                return Ok(Lookup::Failed(Error::Io(std::io::Error::other(format!(
                    "`{url}` returned status {}; try again later",
                    answer.status().as_u16()
                )))));
            }
            // Some servers return an error page with status 200.
            let found = Some(answer).filter(|answer| answer.status() == StatusCode::OK);
            let found = found.and_then(|answer| serde_json::from_slice(answer.body()).ok());
            return Ok(found.map_or(Lookup::NotFound, Lookup::Found));
        }
        Err(Error::Refused(format!("more than {REDIRECTS} redirects, the last to `{url}`")))
    }

    /// Sends a POST request and returns the response, whatever its status.
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A web of redirects. Each address without one has a document that names it.
    struct Redirects {
        to: Vec<(&'static str, &'static str)>,
        requested: Mutex<Vec<String>>,
    }

    impl Web for Redirects {
        async fn send(&self, request: Request<Bytes>, _: Reach) -> Result<Response<Bytes>> {
            let url = request.uri().to_string();
            self.requested.lock().unwrap().push(url.clone());
            Ok(match self.to.iter().find(|(from, _)| *from == url) {
                Some((_, to)) => {
                    Response::builder().status(302).header("location", *to).body(Bytes::new()).unwrap()
                }
                None => Response::new(json!({ "url": url }).to_string().into()),
            })
        }

        async fn addresses(&self, _: &str) -> Vec<IpAddr> {
            Vec::new()
        }
    }

    /// Returns the address of the document that is found, and how many requests that took.
    async fn found(to: &[(&'static str, &'static str)]) -> Result<(String, usize)> {
        let web = Redirects { to: to.to_vec(), requested: Mutex::default() };
        let guarded = Guarded { web: &web, reach: Reach::of(&"https://a.test".parse().unwrap(), &[]) };
        let found: Option<Value> = guarded.get("https://a.test/1").await?;
        let count = web.requested.lock().unwrap().len();
        Ok((found.unwrap()["url"].as_str().unwrap().to_owned(), count))
    }

    #[tokio::test]
    async fn redirects_are_followed_within_the_reach_and_up_to_a_limit() {
        for (to, expected) in [
            (&[][..], Ok(("https://a.test/1", 1))),
            (&[("https://a.test/1", "/2?x")], Ok(("https://a.test/2?x", 2))),
            (&[("https://a.test/1", "https://b.test/2")], Ok(("https://b.test/2", 2))),
            (
                &[("https://a.test/1", "/2"), ("https://a.test/2", "/3"), ("https://a.test/3", "/4")],
                Ok(("https://a.test/4", 4)),
            ),
            (&[("https://a.test/1", "/1")], Err("more than 3 redirects")),
            (&[("https://a.test/1", "//b.test/2")], Err("requests to `//b.test/2` are not allowed")),
            (&[("https://a.test/1", "2")], Err("requests to `2` are not allowed")),
            (&[("https://a.test/1", "http://b.test/2")], Err("it is not encrypted")),
            (&[("https://a.test/1", "https://127.0.0.1/2")], Err("private network")),
        ] {
            match (found(to).await, expected) {
                (Ok((url, count)), Ok(expected)) => assert_eq!((url.as_str(), count), expected),
                (Err(error), Err(expected)) => {
                    assert!(error.to_string().contains(expected), "{to:?}: {error}");
                }
                (found, _) => panic!("{to:?}: {found:?}"),
            }
        }
    }

    #[tokio::test]
    async fn an_address_is_its_own_name() {
        let network = Network::with_proxy(Proxy::none());
        assert_eq!(Web::addresses(&network, "127.0.0.1").await, [IpAddr::from([127, 0, 0, 1])]);
    }
}
