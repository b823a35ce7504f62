use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use pintle::{
    Server,
    proto::http::Guard,
    server::http::{Body, Http, RequestBody},
};
use pintle_oauth::server::{Protected, ProtectedService};
use tokio::task::JoinSet;
use tower_layer::Layer as _;
use tower_service::Service;

use super::{
    PendingPage,
    listening::{SSE_MESSAGES, SSE_STREAM},
};
use crate::failure::Failure;

/// The path of the metadata of protected resources (RFC 9728), before their own.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// The time that the calls of a removed path have to complete.
const REMOVED_GRACE: Duration = Duration::from_secs(60);

/// A function that returns the check of the tokens for a path.
pub(crate) type PathProtection = dyn Fn(&str) -> pintle::Result<Protected> + Send + Sync;

/// The servers of an address, each at its path. Paths can be added and removed while it serves.
pub(crate) struct Routes {
    routes: RwLock<Vec<Route>>,
    guard: Guard,
    protection: RwLock<Option<Box<PathProtection>>>,
    is_draining: AtomicBool,
}

#[derive(Clone)]
struct Route {
    path: Arc<str>,
    http: Http,
    service: RouteService,
}

/// A server, with or without a check of tokens that are for its path.
#[derive(Clone)]
pub(super) enum RouteService {
    Plain(Http),
    Protected(ProtectedService<PagedHttp>),
}

impl Routes {
    /// Creates routes for requests that a guard allows. Tokens are checked for each path, if there is a protection.
    pub(super) fn new(guard: Guard, protection: Option<Box<PathProtection>>) -> Self {
        let protection = RwLock::new(protection);
        Self { routes: RwLock::default(), guard, protection, is_draining: AtomicBool::new(false) }
    }

    /// Has the tokens for all paths checked in another way from now on. Sessions and open streams go on.
    pub(crate) fn protect(&self, protection: Box<PathProtection>) -> Result<(), Failure> {
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        let protect = |route: &Route| RouteService::protected(&*protection, &route.path, &route.http);
        let services = routes.iter().map(protect).collect::<Result<Vec<_>, _>>()?;
        routes.iter_mut().zip(services).for_each(|(route, service)| route.service = service);
        *self.protection.write().unwrap_or_else(PoisonError::into_inner) = Some(protection);
        Ok(())
    }

    /// Serves a server at a path, in place of the one that is there. The first server is also at the two paths of the old transport.
    /// `prepare` adds more settings.
    pub(crate) fn insert(
        &self,
        path: &str,
        server: &Server,
        prepare: impl FnOnce(Http) -> Http,
    ) -> Result<(), Failure> {
        let http = server.http().map_err(|error| Failure::internal(&error))?.guard(self.guard.clone());
        let http = prepare(http.at(path));
        let is_first = self.read().first().is_none_or(|first| &*first.path == path);
        let http = if is_first { http.two_endpoints(SSE_STREAM, SSE_MESSAGES) } else { http };
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        let service = match &*self.protection.read().unwrap_or_else(PoisonError::into_inner) {
            None => RouteService::Plain(http.clone()),
            Some(protection) => RouteService::protected(&**protection, path, &http)?,
        };
        let route = Route { path: path.into(), http, service };
        match routes.iter_mut().find(|known| &*known.path == path) {
            Some(known) => end(std::mem::replace(known, route)),
            None => routes.push(route),
        }
        Ok(())
    }

    /// Removes a path. Its running calls have a while to complete.
    pub(crate) fn remove(&self, path: &str) {
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = routes.iter().position(|known| &*known.path == path) {
            end(routes.remove(at));
        }
    }

    /// Refuses new calls from now on. The future waits up to `grace` for the running ones, ends the rest, and returns how many those were.
    pub(crate) fn drain(&self, grace: Duration) -> impl Future<Output = usize> + use<> {
        self.is_draining.store(true, Ordering::Release);
        let mut draining = JoinSet::new();
        for Route { http, .. } in self.read() {
            draining.spawn(async move { http.shutdown(grace).await.cut });
        }
        async { draining.join_all().await.into_iter().sum() }
    }

    /// Returns whether new calls are refused.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }

    /// Returns the number of open sessions.
    pub(crate) fn sessions(&self) -> usize {
        self.read().iter().map(|route| route.http.sessions()).sum()
    }

    /// Returns whether tokens are checked for each path.
    pub(super) fn are_protected(&self) -> bool {
        self.protection.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Returns the server for a path; for other paths the first, which knows those of the old transport.
    pub(super) fn find(&self, path: &str) -> Option<RouteService> {
        let own = path.strip_prefix(WELL_KNOWN).filter(|_| self.are_protected());
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        let path = own.unwrap_or(path);
        let found = routes.iter().find(|route| &*route.path == path).or_else(|| routes.first());
        found.map(|route| route.service.clone())
    }

    fn read(&self) -> Vec<Route> {
        self.routes.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Ends a route in the background.
fn end(route: Route) {
    tokio::spawn(async move { route.http.shutdown(REMOVED_GRACE).await });
}

impl RouteService {
    fn protected(protection: &PathProtection, path: &str, http: &Http) -> Result<Self, Failure> {
        let protected = protection(path).map_err(|error| Failure::internal(&error))?;
        Ok(Self::Protected(protected.layer(PagedHttp(http.clone()))))
    }

    /// Answers a request.
    pub(super) fn answer(
        self,
        request: Request<RequestBody>,
    ) -> Pin<Box<dyn Future<Output = Response<Body>> + Send>> {
        match self {
            Self::Plain(mut http) => {
                let answering = http.call(request);
                Box::pin(async move { answering.await.unwrap_or_else(|never| match never {}) })
            }
            Self::Protected(mut service) => {
                let answering = service.call(request);
                Box::pin(async move { answering.await.unwrap_or_else(|never| match never {}) })
            }
        }
    }
}

/// A server, or the page that a request has with it, behind a check of tokens.
#[derive(Clone)]
pub(super) struct PagedHttp(Http);

impl Service<Request<RequestBody>> for PagedHttp {
    type Response = Response<Body>;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::<Request<RequestBody>>::poll_ready(&mut self.0, cx)
    }

    fn call(&mut self, mut request: Request<RequestBody>) -> Self::Future {
        let pending = request.extensions_mut().remove::<PendingPage>();
        if let Some(page) = pending.and_then(|pending| pending.page(&request)) {
            return Box::pin(std::future::ready(
                Ok(page.into_response(|text| Body::from(Bytes::from(text)))),
            ));
        }
        Box::pin(self.0.call(request))
    }
}
