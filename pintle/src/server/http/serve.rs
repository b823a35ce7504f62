//! Serving on a listener: `Server::serve_http`, `Http::serve` and `Http::serve_with`.

use std::{io, net::SocketAddr};

use http::{Request, Response};
use http_body::Body;
use tokio::net::{TcpListener, ToSocketAddrs};
use tower_layer::Layer;
use tower_service::Service;

use super::{Http, HttpServer, HttpServing, RequestBody, ShutdownSignal, choice::Choice};
use crate::{Result, error::BoxError, server::Server};

/// The path that [`Server::serve_http`] serves.
const PATH: &str = "/mcp";

impl Server {
    /// Serves HTTP on this address at the path `/mcp` in a background task, for clients of every revision.
    ///
    /// On every address, only requests for `localhost` or a loopback address are accepted, and requests from pages of other
    /// origins are refused. To accept other hosts, and for all other options, use [`http`](Self::http),
    /// [`Http::guard`] and [`Http::serve`]. [`serve_on`](Self::serve_on) returns the same type for stdio and HTTP.
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
    /// // For example on Ctrl-C: running calls have ten seconds to complete.
    /// let shutdown = serving.shutdown(Duration::from_secs(10)).await;
    /// assert_eq!(shutdown.aborted, 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if a registration is invalid or the address cannot be bound.
    pub async fn serve_http(&self, address: impl ToSocketAddrs) -> Result<HttpServing> {
        let http = self.http()?.at(PATH);
        let listener = TcpListener::bind(address).await?;
        Ok(http.serve(listener)?)
    }
}

impl Http {
    /// Serves the connections of a listener in a background task.
    ///
    /// For TLS and limits on connections, create an [`HttpServer`] for this service.
    ///
    /// # Errors
    ///
    /// Returns an error if the listener has no local address.
    pub fn serve(self, listener: TcpListener) -> io::Result<HttpServing> {
        let signal = self.prepare(&listener)?;
        self.into_server().shutdown_signal(signal).serve(listener)
    }

    /// Converts this service into a server for it alone, with limits on connections that can be set. Requests cost less than with
    /// [`HttpServer::new`], which puts the client's address into their extensions for layers around a service.
    ///
    /// As with `HttpServer::new`, a shutdown closes the service only if both [have one signal](Self::close_on).
    ///
    /// ```
    /// use pintle::{Server, server::tool};
    /// use tokio::net::TcpListener;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// let http = Server::new("greeter", "1.0.0").tool(tool("greet", || async { "Hello!" })).http()?.at("/mcp");
    /// let serving = http.into_server().max_connections(100).serve(TcpListener::bind("127.0.0.1:0").await?)?;
    /// println!("http://{}/mcp", serving.address());
    /// # Ok(()) }
    /// ```
    pub fn into_server(self) -> HttpServer<Self> {
        HttpServer::with_own_service(self)
    }

    /// Serves the connections of a listener with a `tower` layer around this service, for example for authentication.
    ///
    /// # Errors
    ///
    /// Returns an error if the listener has no local address.
    pub fn serve_with<L, B>(self, layer: &L, listener: TcpListener) -> io::Result<HttpServing>
    where
        L: Layer<Self>,
        L::Service: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
        <L::Service as Service<Request<RequestBody>>>::Future: Send + 'static,
        <L::Service as Service<Request<RequestBody>>>::Error: Into<BoxError>,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let signal = self.prepare(&listener)?;
        HttpServer::new(layer.layer(self)).shutdown_signal(signal).serve(listener)
    }

    /// Returns a signal that closes this service when its server is shut down.
    fn prepare(&self, listener: &TcpListener) -> io::Result<ShutdownSignal> {
        warn_of_settings(self, listener.local_addr()?);
        let signal = ShutdownSignal::new();
        self.close_on(&signal);
        Ok(signal)
    }
}

/// Logs warnings about a server that other machines can reach, if its settings are those of a local one.
fn warn_of_settings(http: &Http, address: SocketAddr) {
    if address.ip().is_loopback() {
        return;
    }
    if http.settings().guard.is_loopback() {
        tracing::warn!(
            %address,
            "requests for host names other than `localhost` are refused with 403; allow names with `Http::guard` or `Listen::hosts`"
        );
    }
    // Other processes of the same service could not open the states.
    if http.seals_alone() {
        tracing::warn!(
            %address,
            "states are sealed with a key that only this process has; give all processes the same `Server::state_keys`"
        );
    } else if let Choice::One(server) = &http.settings().choice
        && server.snapshot().settings.guards_alone
    {
        tracing::warn!(
            %address,
            "a state is accepted once by each process that has these `Server::state_keys`; if there are several, share a store with `Http::shared` or `Server::replay_store`, and with `Protected::nonce_store` for DPoP proofs"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Write},
        sync::{Arc, Mutex},
    };

    use pintle_proto::http::Guard;

    use super::*;
    use crate::server::{StateKeys, store::MemoryStore};

    #[derive(Clone, Default)]
    struct Printed(Arc<Mutex<Vec<u8>>>);

    impl Write for Printed {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn warnings(http: &Http, address: &str) -> String {
        // With one dispatcher only, tracing would ask that of another thread, which is none.
        let _second = tracing::Dispatch::new(tracing_subscriber::registry());
        let printed = Printed::default();
        let writer = printed.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || warn_of_settings(http, address.parse().unwrap()));
        String::from_utf8(printed.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_server_that_others_can_reach_warns_of_the_settings_of_a_local_one() {
        let keys = || crate::Server::new("s", "1").state_keys(StateKeys::from([7; 32]));
        let server = || keys().replay_store(MemoryStore::new());
        let local = server().http().unwrap();
        let warned = warnings(&local, "0.0.0.0:8000");
        assert!(warned.contains("WARN") && warned.contains("other than `localhost` are refused"), "{warned}");
        assert!(warned.contains("0.0.0.0:8000") && warned.contains("Http::guard"), "{warned}");
        assert_eq!(warnings(&local, "127.0.0.1:8000"), "");
        assert_eq!(warnings(&local, "[::1]:8000"), "");
        assert_eq!(
            warnings(&server().http().unwrap().guard(Guard::hosts(["notes.test"])), "0.0.0.0:8000"),
            ""
        );
        // The keys are shared, the guard is not.
        let alone = keys().http().unwrap().guard(Guard::hosts(["notes.test"]));
        assert!(warnings(&alone, "0.0.0.0:8000").contains("accepted once by each process"));
        assert_eq!(warnings(&alone, "127.0.0.1:8000"), "");
    }
}
