use std::{future::Future, sync::Arc};

use http::{Request, Response};
use pintle::{
    Server,
    proto::http::Guard,
    server::http::{HttpServer, HttpServing, RequestBody},
};
use serde_json::json;
use tokio::net::TcpListener;

use super::{Access, BearerService, Beside, HttpService, PathProtection, RoutedService, Routes, ServedBody};
use crate::{failure::Failure, output::Output};

/// The path of a server.
pub(crate) const ENDPOINT: &str = "/mcp";

/// The paths of the HTTP+SSE transport, for clients of the oldest revision.
pub(super) const SSE_STREAM: &str = "/sse";
pub(super) const SSE_MESSAGES: &str = "/messages";

/// An open port, and the requests that are allowed there.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(super) listener: TcpListener,
    pub(super) guard: Guard,
    pub(super) access: Access,
    pub(super) address: String,
    /// Whether only this machine can connect.
    pub(super) is_local: bool,
}

impl Listening {
    /// Prints the URL of a path, and the random token, if clients have to send one.
    pub(crate) fn announce(&self, path: &str, output: &Output) -> Result<(), Failure> {
        let url = format!("http://{}{path}", self.address);
        let token = self.access.token();
        let result = match token {
            Some(token) => json!({ "url": url, "token": token }),
            None => json!({ "url": url }),
        };
        output.result(&result, |text| {
            text.line(&url);
            if let Some(token) = token {
                text.line(format!("Authorization: Bearer {token}"));
            }
        })
    }

    /// The address, with the port that was chosen.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the address as a URL, if only this machine can connect.
    pub(crate) fn local_url(&self) -> Option<String> {
        self.is_local.then(|| format!("http://{}", self.address))
    }

    /// Returns whether only this machine can connect, and needs no token.
    pub(crate) fn is_open_to_local(&self) -> bool {
        self.is_local && matches!(self.access, Access::Open)
    }

    /// Returns whether other machines can connect, and need no token.
    pub(crate) fn is_open_to_all(&self) -> bool {
        !self.is_local && matches!(self.access, Access::Open)
    }

    /// Serves a server at `/mcp`, and over HTTP+SSE at `/sse`, until the command is interrupted. Clients that send the token are one principal.
    pub(crate) async fn serve_server(self, server: &Server, output: &Output) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::internal(&error);
        output.note(format!("serving at {}", self.address));
        let http = server.http().map_err(|error| Failure::internal(&error))?.guard(self.guard);
        let http = http.at(ENDPOINT).two_endpoints(SSE_STREAM, SSE_MESSAGES);
        let serving = match self.access {
            Access::Open => reporting(http.into_server(), output).serve(self.listener).map_err(failed)?,
            access @ (Access::Bearer(_) | Access::Routes) => {
                let service = HttpServer::new(BearerService::new(access, http));
                reporting(service, output).serve(self.listener).map_err(failed)?
            }
        };
        serving.wait().await;
        Ok(())
    }

    /// Returns routes of this address, which have no servers yet. With a protection, they check the tokens.
    pub(crate) fn routes(&self, protection: Option<Box<PathProtection>>) -> Routes {
        Routes::new(self.guard.clone(), protection)
    }

    /// Serves several servers, each at its path, and pages beside them.
    pub(crate) fn serve_routes(
        self,
        routes: Arc<Routes>,
        beside: Arc<dyn Beside>,
        output: &Output,
    ) -> Result<HttpServing, Failure> {
        let service = RoutedService { guard: Arc::new(self.guard), access: self.access, routes, beside };
        reporting(HttpServer::new(service), output)
            .serve(self.listener)
            .map_err(|error| Failure::internal(&error))
    }

    /// Answers requests until the command is interrupted. Requests for other hosts, from other web pages and without the token are
    /// refused.
    pub(crate) async fn serve<F, Fut>(self, answer: F, output: &Output) -> Result<(), Failure>
    where
        F: Fn(Request<RequestBody>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Response<ServedBody>> + Send + 'static,
    {
        let service = HttpService::new(Arc::new(self.guard), self.access, Arc::new(answer));
        let serving = reporting(HttpServer::new(service), output)
            .serve(self.listener)
            .map_err(|error| Failure::internal(&error))?;
        serving.wait().await;
        Ok(())
    }
}

/// Returns the server, which prints why it accepts no connections.
fn reporting<S>(server: HttpServer<S>, output: &Output) -> HttpServer<S> {
    let output = output.clone();
    server.on_accept_error(move |error| output.note(format!("no connection is accepted: {error}")))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::StatusCode;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
        time::Instant,
    };

    use super::*;
    use crate::{
        listen::{Page, PageAccess, PageReader},
        output::OutputSettings,
    };

    /// A page for clients, which counts how often it was made.
    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Beside for Counted {
        fn page_access(&self, path: &str) -> Option<PageAccess> {
            (path == "/status").then_some(PageAccess::Clients)
        }

        fn page(&self, _: &str, reader: &PageReader<'_>) -> Option<Page> {
            let made = self.0.fetch_add(1, Ordering::SeqCst) + 1;
            let text = format!("{made} for {:?}", reader.principal);
            Some(Page { status: StatusCode::OK, content_type: "text/plain", text })
        }

        fn refused(&self, _: &str, _: StatusCode, _: Instant) {}
    }

    #[tokio::test]
    async fn a_page_is_made_once_and_for_those_who_may_read_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let access = Access::random().unwrap();
        let token = access.token().unwrap().to_owned();
        let (guard, shown) = (Guard::loopback(), address.clone());
        let listening = Listening { listener, guard, access, address: shown, is_local: true };
        let routes = Arc::new(listening.routes(None));
        let output = Output::new(OutputSettings::default());
        let _serving = listening.serve_routes(routes, Arc::new(Counted::default()), &output).unwrap();
        let get = async |path: &str, token: &str| {
            let mut stream = TcpStream::connect(&address).await.unwrap();
            let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
            stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).await.unwrap();
            let mut response = String::new();
            stream.read_to_string(&mut response).await.unwrap();
            response
        };
        let refused = get("/status", "another").await;
        assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
        let page = get("/status", &token).await;
        assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("1 for Some(\"bearer\")"), "{page}");
        assert!(get("/elsewhere", &token).await.starts_with("HTTP/1.1 403"));
    }
}
