//! HTTP servers whose responses are written down.

use std::io::Write as _;

use super::http_request::{HttpRequest, listen};

/// A status with its text, a content type and a body.
pub(crate) type ScriptedResponse = (&'static str, &'static str, String);

/// Starts a server that returns the same response to every request, in a thread that ends with the tests, and returns its address.
pub(crate) fn serve(status: &'static str, content_type: &'static str, body: &'static str) -> String {
    serve_with(move |_| (status, content_type, body.to_owned()))
}

/// Starts a server that has each request answered.
pub(crate) fn serve_with(answer: impl Fn(&HttpRequest) -> ScriptedResponse + Send + 'static) -> String {
    let address = listen(move |mut connection, _| {
        let (status, content_type, body) = answer(&HttpRequest::read(connection)?);
        let length = body.len();
        write!(
            connection,
            "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
    });
    address.to_string()
}
