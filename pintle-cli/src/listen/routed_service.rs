use std::{
    convert::Infallible,
    future::{Future, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{HeaderValue, Request, Response, StatusCode, header};
use pintle::{
    proto::http::{Guard, Head, Refusal},
    server::{
        Authenticated,
        http::{Http, RequestBody},
    },
};
use tower_service::Service;

use super::{Access, ServedBody, refused};

/// Several servers, each at its path, and pages beside them, behind a check of `Host`, `Origin` and token.
#[derive(Clone)]
pub(super) struct RoutedService {
    pub(super) guard: Arc<Guard>,
    pub(super) access: Access,
    /// The server of each path; the first is for all other paths too.
    pub(super) routes: Arc<[(String, Http)]>,
    pub(super) pages: Arc<PageOf>,
}

/// A function that returns the page of a path.
type PageOf = dyn Fn(&str) -> Option<Page> + Send + Sync;

/// A page of text.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) content_type: &'static str,
    pub(crate) text: String,
    /// Whether it is for clients without a token too.
    pub(crate) is_open: bool,
}

impl Page {
    fn into_response(self) -> Response<ServedBody> {
        let mut response = Response::new(ServedBody::full(self.text));
        *response.status_mut() = self.status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        response
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
        let answer = |response| -> Self::Future { Box::pin(ready(Ok(response))) };
        if self.guard.check(&Head::new(request.method(), request.uri(), request.headers())).is_err() {
            let message = "the `Host` or the `Origin` of the request is not allowed: use the URL that was printed, or start this with `--allow-host`";
            return answer(refused(&Refusal::forbidden(message.to_owned())));
        }
        let mut page = (self.pages)(request.uri().path());
        if let Some(page) = page.take_if(|page| page.is_open) {
            return answer(page.into_response());
        }
        match self.access.check(request.headers()) {
            Ok(Some(principal)) => {
                let principal = Authenticated::new(principal);
                request.extensions_mut().insert(principal);
                // The token is for this server alone: no handler sees it.
                request.headers_mut().remove(header::AUTHORIZATION);
            }
            Ok(None) => {}
            Err(refused) => return answer(*refused),
        }
        if let Some(page) = page {
            return answer(page.into_response());
        }
        let path = request.uri().path();
        let route = self.routes.iter().find(|(known, _)| known == path).or_else(|| self.routes.first());
        let Some((_, http)) = route else {
            return answer(refused(&Refusal::forbidden("there is nothing here".to_owned())));
        };
        let answering = http.clone().call(request);
        Box::pin(async move { Ok(answering.await?.map(ServedBody::Mcp)) })
    }
}
