//! An HTTP server that returns the same response to every request.

use std::io::Write as _;

use super::http_request::{HttpRequest, listen};

/// Starts a server, in a thread that ends with the tests, and returns its address.
pub(crate) fn serve(status: &'static str, content_type: &'static str, body: &'static str) -> String {
    let address = listen(move |mut connection, _| {
        HttpRequest::read(connection)?;
        let length = body.len();
        write!(
            connection,
            "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
    });
    address.to_string()
}
