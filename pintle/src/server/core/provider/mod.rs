//! Providers: what a server offers besides its own routes.
//!
//! What a server does not find among its routes it looks for in its providers, in order. A URI leads to the entry that lists it, of any provider, before
//! any template; `core/lookup.rs` alone decides that. A mounted server is a provider: its handlers run under the same call, with a `Cx` whose
//! snapshot and names are those of the inner server (`core/cx/edited.rs`). An entry keeps the states of the providers that it was found in
//! (`core/cx/found_in.rs`), and a call of it is handled in these: what gates have judged is what runs, whatever has changed meanwhile. The
//! facts of a provider are one value, `ProviderInfo`, which wrappers edit and the server reads again when the provider reports a change.

pub(crate) mod any;
pub(crate) mod changes;
pub(crate) mod conflicts;
pub(crate) mod definition;
pub(crate) mod definitions;
pub(crate) mod entry;
pub(crate) mod info;
pub(crate) mod list;
pub(crate) mod lookup;
pub(crate) mod methods;
pub(crate) mod page;
pub(crate) mod passed_gates;
pub(crate) mod prefix;
pub(crate) mod recipient;
pub(crate) mod registry;
pub(crate) mod server;
pub(crate) mod subscribing;
pub(crate) mod subscription;
pub(crate) mod tasks;
pub(crate) mod watch;

use std::{future::Future, sync::Arc};

use pintle_proto::server::Outcome;

use self::{
    info::{ProviderInfo, ReportPart},
    lookup::Lookup,
    page::ProviderPage,
    watch::{NoChanges, Watch},
};
use crate::server::{Cx, ListKind, PageRequest, RequestError, Scope, Target};

/// A source of tools, prompts, resources and templates besides the routes of a server: a [`Server`](crate::server::Server) that is mounted, a connection
/// to another server, the operations of an API.
///
/// A name is looked up among the routes of the server first, then in its providers in the order in which they were added. The
/// first that [finds](Self::find) it answers. A URI is first looked for among the resources of all, then among the templates, of which the
/// most literal answers. Filters and layers of the server apply to all; arguments and results are neither decoded nor checked by the server.
///
/// ```
/// use pintle::{Server, server::{Cx, ListKind, Lookup, Outcome, PageRequest, Provider, ProviderInfo, ProviderPage}};
/// use pintle::server::{RequestError, Scope, Target};
/// use pintle::types::{schema::{CallToolResult, ServerCapabilities, Tool, ToolsCapability}};
///
/// struct Greeter;
///
/// fn greet() -> Tool {
///     serde_json::from_value(serde_json::json!({"name": "greet", "inputSchema": {"type": "object"}})).unwrap()
/// }
///
/// impl Provider for Greeter {
///     fn info(&self, _: Option<&Scope<'_>>) -> ProviderInfo {
///         let mut capabilities = ServerCapabilities::default();
///         capabilities.tools = Some(ToolsCapability::default());
///         ProviderInfo::new("greeter", capabilities)
///     }
///
///     async fn list(&self, _: Cx, list: ListKind, _: PageRequest) -> Result<ProviderPage, RequestError> {
///         Ok(if list == ListKind::Tools { ProviderPage::of([greet()])? } else { ProviderPage::default() })
///     }
///
///     fn find(&self, _: &Scope<'_>, target: &Target<'_>) -> Lookup {
///         (*target == Target::Tool("greet".into())).then(greet).into()
///     }
///
///     async fn handle(&self, _: Cx) -> Outcome {
///         Outcome::Complete(CallToolResult::raw_text("Hello.").into())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let server = Server::new("demo", "1.0.0").provider(Greeter);
/// # #[cfg(feature = "client")] {
/// let client = pintle::Client::new("demo", "1.0.0").connect(server.in_process()?).await?;
/// assert_eq!(client.call_tool("greet", ()).await?.text(), "Hello.");
/// # }
/// # Ok(()) }
/// ```
pub trait Provider: Send + Sync + 'static {
    /// Returns the facts of the provider: all, or those that a caller may see.
    fn info(&self, caller: Option<&Scope<'_>>) -> ProviderInfo;

    /// Returns a page of a list, in an order that does not change. The entries are JSON objects as clients get them, with all of
    /// their members. After 1,000 pages or 64 MiB, the rest of a list is left out, with a warning in the log.
    ///
    /// An error fails the list of the whole server: a provider that cannot be reached returns its last list or an error.
    fn list(
        &self,
        cx: Cx,
        list: ListKind,
        page: PageRequest,
    ) -> impl Future<Output = Result<ProviderPage, RequestError>> + Send;

    /// Looks up an entry, without waiting for anything. An entry that this caller may not see is [hidden](crate::server::ProvidedEntry::hidden).
    ///
    /// It decides which provider handles a request, which rights a request over HTTP needs, what gates judge, and whether a client is
    /// notified of a changed resource.
    fn find(&self, scope: &Scope<'_>, target: &Target<'_>) -> Lookup;

    /// Answers a `tools/call`, `prompts/get`, `resources/read` or `completion/complete` of an entry that
    /// [`find`](Self::find) returned. [`Cx::params`] are those of the request, and results are sent as they are.
    fn handle(&self, cx: Cx) -> impl Future<Output = Outcome> + Send;

    /// Returns a part of what is known of the provider without I/O, for checks and suggestions. The default is nothing.
    fn report(&self, part: ReportPart) -> Vec<String> {
        let _ = part;
        Vec::new()
    }

    /// Returns the part of the provider that changes by itself. The default never does.
    fn watch(&self) -> &dyn Watch {
        &NoChanges
    }
}

/// A provider that its program keeps a handle to.
impl<P: Provider> Provider for Arc<P> {
    fn info(&self, caller: Option<&Scope<'_>>) -> ProviderInfo {
        (**self).info(caller)
    }

    fn list(
        &self,
        cx: Cx,
        list: ListKind,
        page: PageRequest,
    ) -> impl Future<Output = Result<ProviderPage, RequestError>> + Send {
        (**self).list(cx, list, page)
    }

    fn find(&self, scope: &Scope<'_>, target: &Target<'_>) -> Lookup {
        (**self).find(scope, target)
    }

    fn handle(&self, cx: Cx) -> impl Future<Output = Outcome> + Send {
        (**self).handle(cx)
    }

    fn report(&self, part: ReportPart) -> Vec<String> {
        (**self).report(part)
    }

    fn watch(&self) -> &dyn Watch {
        (**self).watch()
    }
}
