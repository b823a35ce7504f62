//! An HTTP server that returns the same response to every request.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
};

/// Starts a server, in a thread that ends with the tests, and returns its address.
pub(crate) fn serve(status: &'static str, content_type: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // A client that has hung up, or speaks TLS, gets no response.
            let _ = respond(&connection, status, content_type, body);
        }
    });
    address
}

fn respond(connection: &TcpStream, status: &str, content_type: &str, body: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
    let length = body.len();
    write!(
        &*connection,
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}
