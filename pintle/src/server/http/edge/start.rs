//! From a server to a socket, in one word.

use std::{io, net::SocketAddr};

use http::{Request, Response};
use http_body::Body;
use tokio::net::{TcpListener, ToSocketAddrs};
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    Result,
    server::{
        Server,
        http::{Http, HttpServer, HttpServing, RequestBody, Stopping},
    },
};

/// Where [`Server::serve_http`] serves.
const PATH: &str = "/mcp";

impl Server {
    /// Serves HTTP at the path `/mcp` of this address, in the background, for clients of every revision.
    ///
    /// On an address of this machine only requests to it by a name of this machine are answered, and pages of other sites
    /// are refused. To be reached by other names say which, with [`Http::guard`]: that is [`http`](Self::http) and
    /// [`Http::serve`], which also have everything else that can be chosen.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pintle::{Server, server::tool};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// let server = Server::new("greeter", "1.0.0").tool(tool("greet", || async { "Hello!" }));
    /// let serving = server.serve_http("127.0.0.1:0").await?;
    /// println!("http://{}/mcp", serving.address());
    ///
    /// // Until somebody presses Ctrl-C, say; then what runs gets its time to come to an end.
    /// let shutdown = serving.shutdown(Duration::from_secs(10)).await;
    /// assert_eq!(shutdown.aborted, 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// What was registered is not as it should be, or the address cannot be listened on.
    pub async fn serve_http(&self, address: impl ToSocketAddrs) -> Result<HttpServing> {
        let http = self.http()?.at(PATH);
        let listener = TcpListener::bind(address).await?;
        Ok(http.serve(listener)?)
    }
}

impl Http {
    /// Serves what comes in here, in the background.
    ///
    /// For TLS, and for limits of connections, put this service into an [`HttpServer`] yourself.
    ///
    /// # Errors
    ///
    /// The listener has no address.
    pub fn serve(self, listener: TcpListener) -> io::Result<HttpServing> {
        let stopping = self.begun(&listener)?;
        HttpServer::ours(self).stopping(stopping).serve(listener)
    }

    /// The same with a layer around this service: authentication, say.
    ///
    /// # Errors
    ///
    /// The listener has no address.
    pub fn serve_with<L, B>(self, layer: &L, listener: TcpListener) -> io::Result<HttpServing>
    where
        L: Layer<Self>,
        L::Service: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
        <L::Service as Service<Request<RequestBody>>>::Future: Send + 'static,
        <L::Service as Service<Request<RequestBody>>>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let stopping = self.begun(&listener)?;
        HttpServer::new(layer.layer(self)).stopping(stopping).serve(listener)
    }

    /// Whom a server of this asks when it is shut down.
    fn begun(&self, listener: &TcpListener) -> io::Result<Stopping> {
        warn_of_lonely_keys(self, listener.local_addr()?);
        let stopping = Stopping::new();
        self.stops_with(&stopping);
        Ok(stopping)
    }
}

/// Whoever listens to others may well have other processes beside it, and to them the states that this one seals are
/// noise.
fn warn_of_lonely_keys(http: &Http, address: SocketAddr) {
    if !address.ip().is_loopback() && http.seals_alone() {
        tracing::warn!(
            %address,
            "states are sealed with a key that only this process has: give all processes the same `Server::state_keys`"
        );
    }
}
