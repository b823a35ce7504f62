use std::{
    convert::Infallible,
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_MAX_AGE, ALLOW, CACHE_CONTROL, CONTENT_TYPE,
    },
};
use pintle::server::http::Body;
use tower_service::Service;

/// The server's metadata as a service (RFC 9728), for frameworks that route by path: mount it at
/// [`Protected::metadata_path`](super::Protected::metadata_path).
///
/// It is public, readable from pages of any origin, and cacheable for an hour.
#[derive(Clone, Debug)]
pub struct Metadata(Arc<str>);

impl Metadata {
    pub(super) fn new(document: Arc<str>) -> Self {
        Self(document)
    }

    pub(super) fn answer(&self, method: &Method) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        match *method {
            Method::GET | Method::HEAD => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
                if method == Method::GET {
                    *response.body_mut() = Bytes::copy_from_slice(self.0.as_bytes());
                }
            }
            // A browser sends a preflight, because clients send `MCP-Protocol-Version` here too.
            Method::OPTIONS => {
                headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET"));
                headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
                headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
                *response.status_mut() = StatusCode::NO_CONTENT;
            }
            _ => {
                headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
                *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            }
        }
        response
    }
}

impl<B> Service<Request<B>> for Metadata {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        ready(Ok(self.answer(request.method()).map(Body::from)))
    }
}
