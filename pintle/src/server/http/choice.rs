//! Which server answers a request.

use std::{future::Future, pin::Pin, sync::Arc};

use http::{StatusCode, request::Parts};
use pintle_proto::http::Refusal;
use pintle_types::RpcError;

use super::Http;
use crate::server::{Server, core::snapshot::Snapshot};

/// The rule that chooses the server of a request.
#[derive(Clone)]
pub(super) enum Choice {
    One(Server),
    ByHead(Arc<ByHead>),
    Awaited(Arc<Awaited>),
}

type ByHead = dyn Fn(&Parts) -> Server + Send + Sync;
type Awaited = dyn Fn(&Parts) -> Choosing + Send + Sync;

/// The future of a choice.
pub(super) type Choosing = Pin<Box<dyn Future<Output = Result<Server, Refusal>> + Send>>;

impl Choice {
    /// Returns whether all requests have one server.
    pub(super) fn is_single(&self) -> bool {
        matches!(self, Self::One(_))
    }
}

/// The choice of the server.
impl Http {
    /// Chooses the server by the head of the request, for example by tenant or path. A session stays with the server that it
    /// was opened with, whose requirements and filters apply to it.
    ///
    /// With a [session store](Self::session_store), give each server a name of its own: the record of a session names its
    /// server, and a process that restores the session answers 404 if the request chooses a server of another name.
    ///
    /// A server with [invalid registrations](Server::check) is not served: the response is 500, and the faults are logged.
    ///
    /// ```
    /// use pintle::Server;
    ///
    /// # fn main() -> pintle::Result<()> {
    /// let (notes, admin) = (Server::new("notes", "1.0.0"), Server::new("admin", "1.0.0"));
    /// let http = notes.http()?.choose(move |head| match head.uri.path() {
    ///     "/admin" => admin.clone(),
    ///     _ => notes.clone(),
    /// });
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn choose(self, server: impl Fn(&Parts) -> Server + Send + Sync + 'static) -> Self {
        self.set(|settings| {
            settings.choice = Choice::ByHead(Arc::new(server));
            settings.looks = true;
        })
    }

    /// Chooses the server asynchronously, for example with a database query. It may refuse the request, and the client gets
    /// the reason.
    ///
    /// The future does not borrow the head: copy what it needs.
    ///
    /// ```
    /// use http::StatusCode;
    /// use pintle::{Server, proto::http::Refusal, types::RpcError};
    ///
    /// async fn look_up(tenant: &str) -> Option<Server> {
    ///     (tenant == "acme").then(|| Server::new("acme", "1.0.0"))
    /// }
    ///
    /// # fn main() -> pintle::Result<()> {
    /// let http = Server::new("tenants", "1.0.0").http()?.choose_async(|head| {
    ///     let tenant = head.headers.get("x-tenant").and_then(|name| name.to_str().ok()).map(str::to_owned);
    ///     async move {
    ///         let tenant = tenant.unwrap_or_default();
    ///         look_up(&tenant).await.ok_or_else(|| {
    ///             let error = RpcError::invalid_request(format!("no such tenant: `{tenant}`"));
    ///             Refusal::new(StatusCode::NOT_FOUND, error)
    ///         })
    ///     }
    /// });
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn choose_async<F, Fut>(self, server: F) -> Self
    where
        F: Fn(&Parts) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Server, Refusal>> + Send + 'static,
    {
        self.set(|settings| {
            settings.choice = Choice::Awaited(Arc::new(move |head| Box::pin(server(head))));
            settings.looks = true;
        })
    }
}

/// Refuses a request with 500 if the registrations of the chosen server are invalid.
pub(super) fn check(snapshot: &Snapshot) -> Result<(), Refusal> {
    let Some(fault) = snapshot.fault() else { return Ok(()) };
    tracing::error!(fault, "the server that was chosen for a request is not served");
    let error = RpcError::internal("the server is misconfigured; see its log");
    Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error))
}
