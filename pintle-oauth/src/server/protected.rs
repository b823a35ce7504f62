use std::{fmt, net::SocketAddr, sync::Arc};

use http::Uri;
use pintle::{
    Error, Result, Server,
    proto::http::Guard,
    server::{
        http::{Cors, Http, HttpServing},
        store::Store,
    },
};
use serde_json::{Value, json};
use tokio::net::{TcpListener, ToSocketAddrs};
use tower_layer::Layer;

use super::{
    address,
    algorithm::Algorithm,
    clock,
    document::Metadata,
    principal::Principal,
    reach::Reach,
    replay::Replay,
    scope::Scopes,
    service::{Gatekeeper, ProtectedService},
    verify::{AnyVerify, Verify},
};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// A layer that requires a token for this server. Other requests get a challenge that names the authorization server.
///
/// ```no_run
/// use pintle::{Server, server::tool};
/// use pintle_oauth::server::{Jwt, Principal, Protected};
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> pintle::Result<()> {
///     let whoami = tool("whoami", |who: Principal| async move { who.subject().to_owned() });
///     let server = Server::new("notes", "1.0.0").tool(whoami);
///     // How clients reach the server, and who issues its tokens.
///     let tokens = Jwt::new("https://login.example.com")?;
///     let protected = Protected::new("https://mcp.example.com/mcp", tokens)?;
///     protected.serve(&server, "127.0.0.1:8080").await?.wait().await;
///     Ok(())
/// }
/// ```
///
/// It is a `tower` layer, so that it can wrap a service of your own. The inner service does not see the token:
///
/// ```
/// use pintle::Server;
/// use pintle_oauth::server::{Jwt, Protected};
/// use tower_layer::Layer;
///
/// # fn main() -> pintle::Result<()> {
/// let protected = Protected::new("https://mcp.example.com/mcp", Jwt::new("https://login.example.com")?)?;
/// let service = protected.layer(Server::new("notes", "1.0.0").http()?);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Protected {
    pub(super) resource: Arc<str>,
    pub(super) uri: Uri,
    pub(super) verifiers: Vec<Arc<dyn AnyVerify>>,
    pub(super) scopes: Scopes,
    offered: Option<Scopes>,
    pub(super) implied: Vec<(String, Scopes)>,
    name: Option<String>,
    documentation: Option<String>,
    pub(super) dpop_only: bool,
    pub(super) replay: Arc<Replay>,
    /// The proofs that other processes have accepted.
    pub(super) nonces: Option<Arc<dyn Store>>,
    pub(super) keeps_token: bool,
    /// Returns the name of a principal, in place of its key.
    pub(super) names: Option<Arc<PrincipalNames>>,
}

/// A function that returns the name of a principal.
type PrincipalNames = dyn Fn(&Principal) -> Option<String> + Send + Sync;

impl Protected {
    /// Protects the server at this address, as clients write it: tokens have to be for it, byte for byte. `verifier` checks
    /// them.
    ///
    /// # Errors
    ///
    /// Fails if it is not an `https` address. Plain `http` is accepted for loopback addresses only.
    pub fn new(resource: impl Into<Arc<str>>, verifier: impl Verify) -> Result<Self> {
        let resource = resource.into();
        let uri: Option<Uri> = resource.parse().ok().filter(|_| !resource.contains('#'));
        let uri = uri.filter(|uri| Reach::of(uri, &[]).check(&resource).is_ok()).ok_or_else(|| {
            Error::Misuse(format!(
                "`{resource}` cannot be protected; use the `https` address that clients connect to"
            ))
        })?;
        Ok(Self {
            resource,
            uri,
            verifiers: vec![Arc::new(verifier)],
            scopes: Scopes::default(),
            offered: None,
            implied: Vec::new(),
            name: None,
            documentation: None,
            dpop_only: false,
            replay: Arc::new(Replay::starting_at(clock::now())),
            nonces: None,
            keeps_token: false,
            names: None,
        })
    }

    /// Also records the DPoP proofs that were used in a store that several processes share, such as `pintle_redis::Redis`, so that a
    /// proof is accepted once by all of them. By default each process accepts it once, and none that was issued more than five seconds
    /// before it began: others may have been used. If the store cannot be reached, requests with a proof are refused with 503.
    ///
    /// ```
    /// # use pintle_oauth::server::Protected;
    /// use pintle::server::store::MemoryStore;
    ///
    /// # fn with(protected: Protected) -> Protected {
    /// // In production: a store that all processes reach.
    /// protected.nonce_store(MemoryStore::new())
    /// # }
    /// ```
    #[must_use]
    pub fn nonce_store(mut self, store: impl Store) -> Self {
        self.nonces = Some(Arc::new(store));
        // The store knows those that were used before.
        self.replay = Arc::default();
        self
    }

    /// Accepts tokens of another issuer as well. The first verifier that [takes](Verify::takes) a token decides: add one that
    /// takes all tokens last.
    #[must_use]
    pub fn or(mut self, verifier: impl Verify) -> Self {
        self.verifiers.push(Arc::new(verifier));
        self
    }

    /// Sets the scopes that every request needs. Single tools may need more:
    /// [`requires`](pintle::server::ToolRoute::requires).
    #[must_use]
    pub fn scopes<T: Into<String>>(mut self, scopes: impl IntoIterator<Item = T>) -> Self {
        self.scopes = Scopes::of(scopes);
        self
    }

    /// Sets the scopes that clients request by default, which are in the server's metadata. The default is what every request
    /// needs; do not list all scopes.
    #[must_use]
    pub fn offers<T: Into<String>>(mut self, scopes: impl IntoIterator<Item = T>) -> Self {
        self.offered = Some(Scopes::of(scopes));
        self
    }

    /// Declares that the first scope includes the others, and what those include.
    ///
    /// ```
    /// # use pintle_oauth::server::Protected;
    /// # fn with(protected: Protected) -> Protected {
    /// protected.implies("notes:write", ["notes:read"])
    /// # }
    /// ```
    #[must_use]
    pub fn implies<T: Into<String>>(
        mut self,
        scope: impl Into<String>,
        others: impl IntoIterator<Item = T>,
    ) -> Self {
        self.implied.push((scope.into(), Scopes::of(others)));
        self
    }

    /// Sets the name of the server that is shown to users when they log in.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the address of the server's documentation.
    #[must_use]
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.documentation = Some(url.into());
        self
    }

    /// Accepts only tokens that are bound to a key of the client (DPoP, RFC 9449), so that a stolen one cannot be used. Bound
    /// tokens always need a proof, with or without this.
    #[must_use]
    pub fn dpop_only(mut self) -> Self {
        self.dpop_only = true;
        self
    }

    /// Sets the names of principals, to which sessions, states and subscriptions are bound, and which gates compare. The default name
    /// is unique for an issuer, a subject and a client. A token for whose principal `name` returns `None` is not accepted.
    ///
    /// Two principals of the same name are the same to the server: use a claim that only the issuer decides, and one issuer.
    ///
    /// ```
    /// # use pintle_oauth::server::Protected;
    /// # fn with(protected: Protected) -> Protected {
    /// protected.principals(|principal| Some(principal.subject().to_owned()))
    /// # }
    /// ```
    #[must_use]
    pub fn principals(mut self, name: impl Fn(&Principal) -> Option<String> + Send + Sync + 'static) -> Self {
        self.names = Some(Arc::new(name));
        self
    }

    /// Adds the [`CallerToken`](super::CallerToken) to the extensions of requests. Without this, no handler sees a token.
    #[must_use]
    pub fn keep_token(mut self) -> Self {
        self.keeps_token = true;
        self
    }

    /// Returns the path of the server's metadata.
    pub fn metadata_path(&self) -> String {
        format!("{WELL_KNOWN}{}", self.uri.path().trim_end_matches('/'))
    }

    /// Returns the server's metadata as a service, for frameworks that route by path. The layer serves it as well, if such
    /// requests reach it.
    ///
    /// ```
    /// # use pintle_oauth::server::Protected;
    /// # use tower_layer::Layer;
    /// # fn on(protected: Protected, http: pintle::server::http::Http) -> axum::Router {
    /// axum::Router::new()
    ///     .route_service("/mcp", protected.layer(http))
    ///     .route_service(&protected.metadata_path(), protected.metadata())
    /// # }
    /// ```
    pub fn metadata(&self) -> Metadata {
        Metadata::new(self.document().to_string().into())
    }

    /// Serves this server in the background, at the path of the protected address, for requests to its host and from pages of
    /// its origin; for a loopback address, with any port.
    ///
    /// For other settings use [`Server::http`] and [`Http::serve_with`], which takes several layers. For example, to allow
    /// pages of other origins:
    ///
    /// ```no_run
    /// use pintle::{Server, proto::http::Guard, server::http::Cors};
    /// use pintle_oauth::server::Protected;
    ///
    /// # async fn serve(server: Server, protected: Protected) -> pintle::Result<()> {
    /// let guard = Guard::hosts(["mcp.example.com"]).origins(["https://app.example.com"]);
    /// let http = server.http()?.at("/mcp").guard(guard.clone());
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    /// // The outer layer first: a page has to be able to read the refusal.
    /// http.serve_with(&(Cors::new(guard), protected), listener)?.wait().await;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the server is not valid, or the address cannot be listened on.
    pub async fn serve(&self, server: &Server, address: impl ToSocketAddrs) -> Result<HttpServing> {
        let host = self.uri.host().unwrap_or_default();
        let local = Reach::of(&self.uri, &[]).is_loopback();
        let guard = if local { Guard::loopback() } else { Guard::hosts([host]) };
        let http: Http = server.http()?.at(self.uri.path()).guard(guard.clone());
        // The outer layer, so that pages can read refusals.
        let layers = (Cors::new(guard), self);
        let listener = TcpListener::bind(address).await?;
        self.warn_of_settings(&http, listener.local_addr()?);
        Ok(http.serve_with(&layers, listener)?)
    }

    /// Logs a warning about a server that other machines can reach and that has the keys of several processes, but no proofs of theirs.
    fn warn_of_settings(&self, http: &Http, address: SocketAddr) {
        if self.nonces.is_none() && !http.seals_alone() && !address.ip().is_loopback() {
            tracing::warn!(
                %address,
                "a DPoP proof is accepted once by each process that has these `Server::state_keys`; if there are several, share a store with `Protected::nonce_store`"
            );
        }
    }

    /// Returns the address of the metadata.
    pub(super) fn metadata_url(&self) -> String {
        format!("{}{}", address::origin(&self.uri), self.metadata_path())
    }

    /// Whether this is the path of the server's metadata: with its path, or at the root, where clients look next.
    pub(super) fn is_metadata(&self, path: &str) -> bool {
        path.strip_prefix(WELL_KNOWN).is_some_and(|rest| {
            let rest = rest.trim_end_matches('/');
            rest.is_empty() || rest == self.uri.path().trim_end_matches('/')
        })
    }

    fn document(&self) -> Value {
        let issuers: Vec<_> = self.verifiers.iter().map(|verifier| verifier.issuer()).collect();
        let mut document = json!({
            "resource": &*self.resource,
            "authorization_servers": issuers,
            "bearer_methods_supported": ["header"],
            "dpop_signing_alg_values_supported": Algorithm::ALL.map(Algorithm::name),
        });
        let scopes: Vec<_> = self.offered.as_ref().unwrap_or(&self.scopes).iter().collect();
        if !scopes.is_empty() {
            document["scopes_supported"] = json!(scopes);
        }
        if self.dpop_only {
            document["dpop_bound_access_tokens_required"] = json!(true);
        }
        if let Some(name) = &self.name {
            document["resource_name"] = json!(name);
        }
        if let Some(url) = &self.documentation {
            document["resource_documentation"] = json!(url);
        }
        document
    }
}

impl<S> Layer<S> for Protected {
    type Service = ProtectedService<S>;

    fn layer(&self, inner: S) -> ProtectedService<S> {
        ProtectedService::new(inner, Arc::new(Gatekeeper::new(self.clone())))
    }
}

impl fmt::Debug for Protected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protected")
            .field("resource", &self.resource)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}
