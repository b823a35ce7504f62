//! A server that requires a login, and its authorization server.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    sync::mpsc,
};

use pintle::{Server, server::tool};
use pintle_oauth::{
    server::{Jwt, Principal, Protected},
    testing::AuthorizationServer,
};

use super::free_address::free_address;

/// Both of them, until the tests end.
pub(crate) struct ProtectedServer {
    pub(crate) url: String,
    pub(crate) login: AuthorizationServer,
}

impl ProtectedServer {
    pub(crate) fn start() -> Self {
        Self::with(|server| server, [])
    }

    /// A server with a tool `write`, which needs more than the first login asks for.
    pub(crate) fn with_write() -> Self {
        let write = tool("write", |who: Principal| async move { format!("written by {}", who.subject()) });
        Self::with(|server| server.tool(write.requires(["notes:write"])), ["notes:read"])
    }

    fn with<const N: usize>(
        more: impl FnOnce(Server) -> Server + Send + 'static,
        scopes: [&'static str; N],
    ) -> Self {
        let (sender, started) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let login = AuthorizationServer::listen().await.unwrap();
                login.subject("alice");
                login.add_client_with_secret("bot", "s3cret");
                let free = free_address();
                let url = format!("http://{free}/mcp");
                let whoami = tool("whoami", |who: Principal| async move { who.subject().to_owned() });
                let server = more(Server::new("notes", "1.0.0").tool(whoami));
                let protected = Protected::new(&*url, Jwt::new(login.issuer()).unwrap()).unwrap();
                let protected = if N == 0 { protected } else { protected.scopes(scopes) };
                let serving = protected.serve(&server, free).await.unwrap();
                sender.send(Self { url, login }).unwrap();
                serving.wait().await;
            });
        });
        started.recv().unwrap()
    }
}

/// Loads a page as a browser does, and returns the address that it ends at. The last page is not loaded if `stop` is in its address.
pub(crate) fn browse(url: &str, stop: &str) -> String {
    let mut url = url.to_owned();
    for _ in 0..5 {
        if !stop.is_empty() && url.starts_with(stop) {
            return url;
        }
        let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let mut connection = TcpStream::connect(address).unwrap();
        write!(connection, "GET /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
        let mut reader = BufReader::new(connection);
        let mut location = None;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap() == 0 || line.trim().is_empty() {
                break;
            }
            if line.to_ascii_lowercase().starts_with("location:") {
                location = Some(line["location:".len()..].trim().to_owned());
            }
        }
        // To the end, so that the other side is not reset.
        let _ = reader.read_to_end(&mut Vec::new());
        match location {
            Some(next) => url = next,
            None => return url,
        }
    }
    panic!("too many redirects: {url}");
}
