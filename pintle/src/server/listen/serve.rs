//! `Server::serve_on` and `Server::run`.

use std::io::{self, IsTerminal, Write};

use super::{Listen, ListenAddress};
use crate::{
    Result,
    server::{Server, Serving},
};

impl Server {
    /// Serves what [`Listen`] names in a background task: the standard streams, HTTP, or the connections of a socket.
    ///
    /// All of them return the same type, so a flag or a configuration file can choose:
    ///
    /// ```
    /// use std::time::Duration;
    /// use pintle::{Server, server::{Listen, tool}};
    ///
    /// # #[cfg(feature = "http-server")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// let server = Server::new("greeter", "1.0.0").tool(tool("greet", || async { "Hello!" }));
    /// let listen: Listen = "http://127.0.0.1:0".parse()?;
    /// let serving = server.serve_on(listen).await?;
    /// println!("{}", serving.url().unwrap_or("stdio"));
    ///
    /// // In a program, when a signal arrives: running calls have ten seconds to complete.
    /// serving.close(Duration::from_secs(10)).await?;
    /// # Ok(()) }
    /// # #[cfg(not(feature = "http-server"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if a registration is invalid, the address cannot be bound, or the feature that serves it is disabled.
    pub async fn serve_on(&self, listen: Listen) -> Result<Serving> {
        listen.address.check_features()?;
        match listen.address {
            #[cfg(feature = "stdio")]
            ListenAddress::Stdio => self.serve(crate::transport::Stdio::new()?),
            #[cfg(feature = "http-server")]
            ListenAddress::Http { ref address, ref path } => {
                let mut http = self.http()?.at(path);
                if !listen.hosts.is_empty() {
                    http = http.guard(pintle_proto::http::Guard::hosts(&listen.hosts));
                }
                if let Some(configure) = &listen.configure {
                    http = configure(http)?;
                }
                let bound = tokio::net::TcpListener::bind(address.as_str()).await;
                let serving = http.serve(bound.map_err(|error| cannot_listen(address, &error))?)?;
                let address =
                    ListenAddress::Http { address: serving.address().to_string(), path: path.clone() };
                let (bound, handle) = (serving.address(), serving.handle());
                let end = async move {
                    serving.wait().await;
                    Ok(crate::Ended::Stopped)
                };
                Ok(Serving::spawn(end, handle).at(address.to_string(), Some(bound)))
            }
            #[cfg(feature = "net")]
            ListenAddress::Tcp(address) => {
                let bound = crate::transport::listen_tcp(&address).await;
                let listener = bound.map_err(|error| cannot_listen(&address, &error))?;
                self.serve_listener(listener, &ListenAddress::Tcp(address))
            }
            #[cfg(all(feature = "net", unix))]
            ListenAddress::Unix(path) => {
                let bound = crate::transport::listen_unix(&path);
                let listener = bound.map_err(|error| cannot_listen(&path, &error))?;
                self.serve_listener(listener, &ListenAddress::Unix(path))
            }
            // `check_features` has refused them.
            #[allow(unreachable_patterns, reason = "not with every feature")]
            other => Err(crate::Error::misuse(format!("`{other}` is not supported by this build"))),
        }
    }

    #[cfg(feature = "net")]
    fn serve_listener(
        &self,
        listener: crate::transport::Listener,
        address: &ListenAddress,
    ) -> Result<Serving> {
        self.start()?;
        let bound = listener.address();
        let url = bound
            .map_or_else(|| address.to_string(), |bound| ListenAddress::Tcp(bound.to_string()).to_string());
        let stop = std::sync::Arc::<crate::server::serving::Stop>::default();
        let run = super::accept::serve(self.clone(), listener, stop.clone());
        Ok(Serving::spawn(run, crate::server::ServingHandle::new(stop)).at(url, bound))
    }

    /// Serves what [`Listen`] names until the client of the standard streams disconnects, or without end.
    ///
    /// The whole `main` of a program that serves stdio, or HTTP if it is started with `--http`:
    ///
    /// ```no_run
    /// # async fn run(server: pintle::Server) -> pintle::Result<()> {
    /// server.run(pintle::server::Listen::from_args()).await
    /// # }
    /// ```
    ///
    /// The address is printed on standard error. To stop the server, for example on a signal, use
    /// [`serve_on`](Self::serve_on).
    ///
    /// # Errors
    ///
    /// Returns an error if the server [cannot be started](Self::serve_on), or if the standard streams fail.
    pub async fn run(&self, listen: Listen) -> Result<()> {
        let by_hand = listen.address == ListenAddress::Stdio && io::stdin().is_terminal();
        let serving = self.serve_on(listen).await?;
        // The server works without a standard error that can be written to.
        let _ = match serving.url() {
            Some(url) => writeln!(io::stderr(), "listening at {url}"),
            None if by_hand => writeln!(
                io::stderr(),
                "this server speaks MCP on standard input and output: start it from a client, or press Ctrl-D"
            ),
            None => Ok(()),
        };
        serving.wait().await.map(drop)
    }
}

#[cfg(any(feature = "http-server", feature = "net"))]
fn cannot_listen(address: &str, error: &io::Error) -> io::Error {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse if address.contains(':') => {
            ": stop the other program, or choose another port"
        }
        _ => "",
    };
    io::Error::new(error.kind(), format!("cannot listen at `{address}`: {error}{advice}"))
}
