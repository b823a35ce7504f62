//! A client and a server over a pipe or over HTTP.

use pintle::{Client, Connection, Server};
use tokio::net::TcpListener;

use super::http_server::remote;

/// The transport of a conversation. Over HTTP the revision decides: two endpoints, sessions, or neither.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Over {
    Pipe,
    Http,
}

pub(crate) const TRANSPORTS: [Over; 2] = [Over::Pipe, Over::Http];

impl Over {
    pub(crate) async fn connect(
        self,
        client: &Client,
        server: &Server,
        revision: &str,
    ) -> pintle::Result<Connection> {
        match self {
            Self::Pipe => client.connect(server.in_process()?).await,
            Self::Http => {
                let http = server.http()?.two_endpoints("/sse", "/messages");
                let serving = http.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).unwrap();
                let address = serving.address();
                // It serves until the runtime ends.
                std::mem::forget(serving);
                client.connect(remote(revision, address)).await
            }
        }
    }
}
