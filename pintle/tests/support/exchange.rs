//! Requests to a service without a socket.

use std::{future::poll_fn, pin::Pin};

use http::{Request, Response};
use http_body::Body as _;
use pintle::server::http::{Body, Http};
use tower_service::Service as _;

/// Sends a request with these headers on top of the usual ones.
pub(crate) async fn send(
    http: &Http,
    method: &str,
    headers: &[(&str, &str)],
    body: String,
) -> Response<Body> {
    let accept = if method == "GET" { "text/event-stream" } else { "application/json, text/event-stream" };
    let mut request = Request::builder()
        .method(method)
        .uri("/mcp")
        .header("host", "localhost")
        .header("accept", accept)
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(body).expect("headers of tests are headers");
    http.clone().call(request).await.expect("every request is answered")
}

/// The next piece of a body, or `None` at its end.
pub(crate) async fn piece(body: &mut Body) -> Option<Vec<u8>> {
    let frame = poll_fn(|task| Pin::new(&mut *body).poll_frame(task)).await?;
    Some(frame.expect("a body in memory does not break").into_data().expect("no trailers").to_vec())
}

/// The whole body.
pub(crate) async fn whole(mut body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(piece) = piece(&mut body).await {
        bytes.extend(piece);
    }
    bytes
}
