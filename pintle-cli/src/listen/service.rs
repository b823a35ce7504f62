use std::{
    convert::Infallible,
    future::{Future, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{HeaderValue, Request, Response, header};
use pintle::{
    proto::http::{Guard, Head, Refusal},
    server::http::RequestBody,
};
use tower_service::Service;

use super::{Access, ServedBody};

/// A function that answers requests, behind a check of their `Host`, `Origin` and token.
pub(crate) struct HttpService<F> {
    guard: Arc<Guard>,
    access: Access,
    answer: Arc<F>,
}

/// The future of a response.
pub(crate) type ServedFuture = Pin<Box<dyn Future<Output = Result<Response<ServedBody>, Infallible>> + Send>>;

impl<F> HttpService<F> {
    pub(super) fn new(guard: Arc<Guard>, access: Access, answer: Arc<F>) -> Self {
        Self { guard, access, answer }
    }
}

impl<F> Clone for HttpService<F> {
    fn clone(&self) -> Self {
        Self { guard: self.guard.clone(), access: self.access.clone(), answer: self.answer.clone() }
    }
}

impl<F, Fut> Service<Request<RequestBody>> for HttpService<F>
where
    F: Fn(Request<RequestBody>) -> Fut,
    Fut: Future<Output = Response<ServedBody>> + Send + 'static,
{
    type Response = Response<ServedBody>;
    type Error = Infallible;
    type Future = ServedFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<RequestBody>) -> Self::Future {
        let head = Head::new(request.method(), request.uri(), request.headers());
        match self.guard.check(&head) {
            Ok(()) => {
                if let Err(refused) = self.access.check(request.headers()) {
                    return Box::pin(ready(Ok(*refused)));
                }
                if !matches!(self.access, Access::Open) {
                    // The token is for this server alone, and is not passed on.
                    request.headers_mut().remove(header::AUTHORIZATION);
                }
                let answer = (self.answer)(request);
                Box::pin(async move { Ok(answer.await) })
            }
            Err(_) => {
                let message = "the `Host` or the `Origin` of the request is not allowed: use the URL that was printed, or start this with `--allow-host`";
                Box::pin(ready(Ok(refused(&Refusal::forbidden(message.to_owned())))))
            }
        }
    }
}

/// Returns the response to a request that is refused.
pub(crate) fn refused(refusal: &Refusal) -> Response<ServedBody> {
    let mut response = Response::new(ServedBody::full(refusal.body(None)));
    *response.status_mut() = refusal.status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(allow) = refusal.allow {
        headers.insert(header::ALLOW, HeaderValue::from_static(allow));
    }
    response
}
