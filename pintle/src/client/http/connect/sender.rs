use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use http::{Request, Response};
use tower_service::Service;

use super::{
    body::{Body, BoxError, ResponseBody},
    pool::Pool,
};

/// A sender of HTTP requests.
pub(in crate::client::http) enum HttpSender {
    Ours(Pool),
    /// An HTTP client of the application.
    Theirs(Arc<dyn Fetch>),
}

/// Sends a request and returns the response once its head is complete.
pub(in crate::client::http) trait Fetch: Send + Sync {
    fn fetch(&self, request: Request<Body>) -> Fetching;
}

pub(in crate::client::http) type Fetching =
    Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, BoxError>> + Send>>;

/// A `tower` service of the application, with its type erased.
pub(in crate::client::http) struct Erased<S>(Mutex<S>);

impl<S> Erased<S> {
    pub(in crate::client::http) fn new(service: S) -> Self {
        Self(Mutex::new(service))
    }
}

impl<S, B> Fetch for Erased<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    fn fetch(&self, request: Request<Body>) -> Fetching {
        // Held for a clone only: whoever's service it is need not be shared between threads.
        let mut service = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move {
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            let answer = service.call(request).await.map_err(Into::into)?;
            Ok(answer.map(ResponseBody::new))
        })
    }
}
