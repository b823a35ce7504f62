use std::{
    convert::Infallible,
    future::{Future, ready},
    pin::Pin,
    task::{Context, Poll},
};

use http::{Request, Response};
use pintle::server::{
    Authenticated,
    http::{Http, RequestBody},
};
use tower_service::Service;

use super::{Access, ServedBody};

/// A server behind a check of the token.
#[derive(Clone)]
pub(super) struct BearerService {
    access: Access,
    http: Http,
}

impl BearerService {
    pub(super) fn new(access: Access, http: Http) -> Self {
        Self { access, http }
    }
}

impl Service<Request<RequestBody>> for BearerService {
    type Response = Response<ServedBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ServedBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request<RequestBody>>::poll_ready(&mut self.http, cx)
    }

    fn call(&mut self, mut request: Request<RequestBody>) -> Self::Future {
        match self.access.check(request.headers()) {
            Ok(Some(principal)) => {
                let principal = Authenticated::new(principal);
                request.extensions_mut().insert(principal);
            }
            Ok(None) => {}
            Err(refused) => return Box::pin(ready(Ok(*refused))),
        }
        // The token is for this server alone: no handler sees it.
        request.headers_mut().remove(http::header::AUTHORIZATION);
        let answering = self.http.call(request);
        Box::pin(async move { Ok(answering.await?.map(ServedBody::Mcp)) })
    }
}
