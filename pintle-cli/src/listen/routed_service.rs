use std::{
    convert::Infallible,
    future::{Future, ready},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use http::{HeaderValue, Request, Response, StatusCode, header};
use pintle::{
    proto::http::{Guard, Head, Refusal},
    server::{Authenticated, PeerAddress, http::RequestBody},
};
use tokio::time::Instant;
use tower_service::Service;

use super::{Access, Routes, ServedBody, refused};

/// Several servers, each at its path, and pages beside them, behind a check of `Host`, `Origin` and token.
#[derive(Clone)]
pub(super) struct RoutedService {
    pub(super) guard: Arc<Guard>,
    pub(super) access: Access,
    pub(super) routes: Arc<Routes>,
    pub(super) beside: Arc<dyn Beside>,
}

/// A page that browsers open, when it is there.
pub(crate) type BrowserPage = Pin<Box<dyn Future<Output = Response<String>> + Send>>;

/// The pages and the log of a verb, beside its servers.
pub(crate) trait Beside: Send + Sync {
    /// Returns who reads the page of a path, if there is one.
    fn page_access(&self, path: &str) -> Option<PageAccess>;

    /// Returns the page of a path for a reader, if there is one. It is called for those who may read it.
    fn page(&self, path: &str, reader: &PageReader<'_>) -> Option<Page>;

    /// Answers a request for a page that browsers open, which have no token.
    fn browser_page(&self, request: &Request<RequestBody>) -> Option<BrowserPage> {
        let _ = request;
        None
    }

    /// Called for a request that was refused before its message was handled.
    fn refused(&self, path: &str, status: StatusCode, start: Instant);
}

/// Those who read a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PageAccess {
    /// Everybody, also without a token.
    Open,
    /// Clients of the servers.
    Clients,
}

/// The reader of a page.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PageReader<'a> {
    /// The authenticated principal, if there is one.
    pub(crate) principal: Option<&'a str>,
    /// Whether the request comes from this machine, and nothing says that it was passed on for another.
    pub(crate) is_local: bool,
    /// The media types that the reader wants.
    pub(crate) accept: Option<&'a str>,
}

/// Headers with which proxies say that a request was passed on.
const FORWARDED: [&str; 6] =
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

impl<'a> PageReader<'a> {
    /// Returns the reader that sends a request, after its principal is known.
    pub(super) fn of<B>(request: &'a Request<B>) -> Self {
        let principal = request.extensions().get::<Authenticated>().and_then(Authenticated::principal);
        let address = request.extensions().get::<PeerAddress>();
        let is_near = address.is_some_and(|PeerAddress(address)| address.ip().to_canonical().is_loopback());
        let is_forwarded = FORWARDED.iter().any(|name| request.headers().contains_key(*name));
        let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
        Self { principal, is_local: is_near && !is_forwarded, accept }
    }
}

/// A page of text.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) content_type: &'static str,
    pub(crate) text: String,
}

/// The pages of a request whose token is being checked.
#[derive(Clone)]
pub(super) struct PendingPage(Arc<dyn Beside>);

impl PendingPage {
    /// Returns the page for the reader that the token is of.
    pub(super) fn page<B>(&self, request: &Request<B>) -> Option<Page> {
        self.0.page(request.uri().path(), &PageReader::of(request))
    }
}

impl Page {
    pub(super) fn into_response<B>(self, body: impl FnOnce(String) -> B) -> Response<B> {
        let mut response = Response::new(body(self.text));
        *response.status_mut() = self.status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        response
    }
}

/// Whether a request over HTTP has reached a server, which logs it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestMark(Arc<AtomicBool>);

impl RequestMark {
    /// Notes that it has.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Service<Request<RequestBody>> for RoutedService {
    type Response = Response<ServedBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ServedBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<RequestBody>) -> Self::Future {
        let (beside, start, mark) = (self.beside.clone(), Instant::now(), RequestMark::default());
        let path = request.uri().path().to_owned();
        request.extensions_mut().insert(mark.clone());
        let answering = self.answer(request);
        Box::pin(async move {
            let response = answering.await;
            let status = response.status();
            if (status.is_client_error() || status.is_server_error()) && !mark.is_set() {
                beside.refused(&path, status, start);
            }
            Ok(response)
        })
    }
}

impl RoutedService {
    fn answer(
        &self,
        mut request: Request<RequestBody>,
    ) -> Pin<Box<dyn Future<Output = Response<ServedBody>> + Send>> {
        let now = |response| -> Pin<Box<dyn Future<Output = Response<ServedBody>> + Send>> {
            Box::pin(ready(response))
        };
        if self.guard.check(&Head::new(request.method(), request.uri(), request.headers())).is_err() {
            let message = "the `Host` or the `Origin` of the request is not allowed: use the URL that was printed, or start this with `--allow-host`";
            return now(refused(&Refusal::forbidden(message.to_owned())));
        }
        if let Some(page) = self.beside.browser_page(&request) {
            return Box::pin(async move { page.await.map(ServedBody::full) });
        }
        let page = self.beside.page_access(request.uri().path());
        if page == Some(PageAccess::Open)
            && let Some(page) = self.beside.page(request.uri().path(), &PageReader::of(&request))
        {
            return now(page.into_response(ServedBody::full));
        }
        if !self.routes.are_protected() {
            match self.access.check(request.headers()) {
                Ok(Some(principal)) => {
                    let principal = Authenticated::new(principal);
                    request.extensions_mut().insert(principal);
                    // The token is for this server alone: no handler sees it.
                    request.headers_mut().remove(header::AUTHORIZATION);
                }
                Ok(None) => {}
                Err(refused) => return now(*refused),
            }
        }
        if page.is_some()
            && !self.routes.are_protected()
            && let Some(page) = self.beside.page(request.uri().path(), &PageReader::of(&request))
        {
            return now(page.into_response(ServedBody::full));
        }
        let Some(route) = self.routes.find(request.uri().path()) else {
            return now(refused(&Refusal::forbidden("there is nothing here".to_owned())));
        };
        if page.is_some() {
            // The check of the first path answers for the pages, and says who reads them.
            request.extensions_mut().insert(PendingPage(self.beside.clone()));
        }
        let answering = route.answer(request);
        Box::pin(async move { answering.await.map(ServedBody::Mcp) })
    }
}
