use std::{future::Future, sync::Arc};

use clap::Args;
use http::{Request, Response};
use pintle::{
    proto::http::Guard,
    server::http::{HttpServer, RequestBody},
};
use tokio::net::TcpListener;

use super::{HttpService, ServedBody};
use crate::failure::Failure;

/// Options of what listens, which `tap` and `replay` have.
#[derive(Args, Clone, Debug, Default)]
pub(in crate::verbs::traffic) struct ListenArgs {
    /// A host that requests may be for, instead of those of this machine; needed to listen for other machines
    #[arg(long = "allow-host", value_name = "HOST")]
    hosts: Vec<String>,
}

/// An open port, and the requests that are allowed there.
#[derive(Debug)]
pub(in crate::verbs::traffic) struct Listening {
    listener: TcpListener,
    guard: Guard,
    address: String,
}

impl ListenArgs {
    pub(in crate::verbs::traffic) fn is_given(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// Opens a port. One that other machines can reach needs the hosts that requests may be for.
    pub(in crate::verbs::traffic) async fn listen(
        &self,
        address: &str,
        verb: &str,
    ) -> Result<Listening, Failure> {
        let next = format!("pintle {verb} --help");
        let failed = |error| Failure::usage(format!("cannot listen at `{address}`: {error}"), next.clone());
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        if !bound.ip().is_loopback() && self.hosts.is_empty() {
            let message = format!(
                "other machines can reach `{address}`: listen at `127.0.0.1`, or name the host with `--allow-host`"
            );
            return Err(Failure::usage(message, next));
        }
        let guard = match self.hosts.is_empty() {
            true => Guard::loopback(),
            false => Guard::hosts(self.hosts.iter().map(String::as_str)),
        };
        Ok(Listening { listener, guard, address: bound.to_string() })
    }
}

impl Listening {
    /// The address, with the actual port.
    pub(in crate::verbs::traffic) fn address(&self) -> &str {
        &self.address
    }

    /// Answers requests until the command is interrupted. Requests for other hosts and from other web pages are refused.
    pub(in crate::verbs::traffic) async fn serve<F, Fut>(self, answer: F) -> Result<(), Failure>
    where
        F: Fn(Request<RequestBody>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Response<ServedBody>> + Send + 'static,
    {
        let service = HttpService::new(Arc::new(self.guard), Arc::new(answer));
        let serving =
            HttpServer::new(service).serve(self.listener).map_err(|error| Failure::internal(&error))?;
        serving.wait().await;
        Ok(())
    }
}
