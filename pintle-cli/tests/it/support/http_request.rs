//! Requests, as servers of the tests read them from a socket.

use std::{
    io::{self, BufRead as _, BufReader, Read as _},
    net::{SocketAddr, TcpListener, TcpStream},
};

/// A request that was read to its end.
#[derive(Debug)]
pub(crate) struct HttpRequest {
    /// The first line and the headers.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl HttpRequest {
    /// Reads the first request of a connection.
    pub(crate) fn read(connection: &TcpStream) -> io::Result<Self> {
        let mut reader = BufReader::new(connection);
        let mut head = String::new();
        loop {
            let before = head.len();
            if reader.read_line(&mut head)? == 0 || head[before..].trim().is_empty() {
                break;
            }
        }
        let mut request = Self { head, body: Vec::new() };
        let length = request.header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
        reader.take(length).read_to_end(&mut request.body)?;
        Ok(request)
    }

    /// Returns the path with the query.
    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// Returns the value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// Listens on this machine, in a thread that ends with the tests, and has each connection served.
pub(crate) fn listen(
    serve: impl Fn(&TcpStream, SocketAddr) -> io::Result<()> + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // A client that has hung up, or speaks TLS, gets no response.
            let _ = serve(&connection, address);
        }
    });
    address
}
