use std::{future::Future, sync::Arc};

use http::{Request, Response};
use pintle::{
    Server,
    proto::http::Guard,
    server::http::{HttpServer, RequestBody},
};
use serde_json::json;
use tokio::net::TcpListener;

use super::{Access, BearerService, HttpService, Page, RoutedService, ServedBody};
use crate::{failure::Failure, output::Output};

/// The path of a server.
pub(crate) const ENDPOINT: &str = "/mcp";

/// The paths of the HTTP+SSE transport, for clients of the oldest revision.
const SSE_STREAM: &str = "/sse";
const SSE_MESSAGES: &str = "/messages";

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

    /// Returns whether only this machine can connect, and needs no token.
    pub(crate) fn is_open_to_local(&self) -> bool {
        self.is_local && matches!(self.access, Access::Open)
    }

    /// Returns whether other machines can connect, and need no token.
    pub(crate) fn is_open_to_all(&self) -> bool {
        !self.is_local && matches!(self.access, Access::Open)
    }

    /// Serves a server at `/mcp`, and over HTTP+SSE at `/sse`, until the command is interrupted. Clients that send the token are one principal.
    pub(crate) async fn serve_server(self, server: &Server) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::internal(&error);
        let http = server.http().map_err(|error| Failure::internal(&error))?.guard(self.guard);
        let http = http.at(ENDPOINT).two_endpoints(SSE_STREAM, SSE_MESSAGES);
        let serving = match self.access {
            Access::Open => http.serve(self.listener).map_err(failed)?,
            access @ Access::Bearer(_) => {
                let service = BearerService::new(access, http);
                HttpServer::new(service).serve(self.listener).map_err(failed)?
            }
        };
        serving.wait().await;
        Ok(())
    }

    /// Serves several servers, each at its path, and pages beside them, until the command is interrupted. The first server is also at
    /// the two paths of the old transport.
    pub(crate) async fn serve_servers(
        self,
        servers: Vec<(String, Server)>,
        pages: impl Fn(&str) -> Option<Page> + Send + Sync + 'static,
    ) -> Result<(), Failure> {
        let mut routes = Vec::with_capacity(servers.len());
        for (path, server) in servers {
            // The guard of the service is asked before.
            let http = server.http().map_err(|error| Failure::internal(&error))?.guard(Guard::any_host());
            let http = http.at(&path);
            let http = if routes.is_empty() { http.two_endpoints(SSE_STREAM, SSE_MESSAGES) } else { http };
            routes.push((path, http));
        }
        let (guard, pages) = (Arc::new(self.guard), Arc::new(pages));
        let service = RoutedService { guard, access: self.access, routes: routes.into(), pages };
        let serving =
            HttpServer::new(service).serve(self.listener).map_err(|error| Failure::internal(&error))?;
        serving.wait().await;
        Ok(())
    }

    /// Answers requests until the command is interrupted. Requests for other hosts, from other web pages and without the token are
    /// refused.
    pub(crate) async fn serve<F, Fut>(self, answer: F) -> Result<(), Failure>
    where
        F: Fn(Request<RequestBody>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Response<ServedBody>> + Send + 'static,
    {
        let service = HttpService::new(Arc::new(self.guard), self.access, Arc::new(answer));
        let serving =
            HttpServer::new(service).serve(self.listener).map_err(|error| Failure::internal(&error))?;
        serving.wait().await;
        Ok(())
    }
}
