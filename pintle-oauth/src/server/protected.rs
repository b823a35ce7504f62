use std::{fmt, sync::Arc};

use http::Uri;
use pintle::{
    Error, Result, Server,
    proto::http::Guard,
    server::http::{Cors, Http, HttpServing},
};
use serde_json::{Value, json};
use tokio::net::{TcpListener, ToSocketAddrs};
use tower_layer::Layer;

use super::{
    address,
    algorithm::Algorithm,
    document::Metadata,
    reach::Reach,
    replay::Replay,
    scope::Scopes,
    service::{Door, ProtectedService},
    verify::{AnyVerify, Verify},
};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// A layer that lets only those in who have a token for this server, and tells the others where to get one.
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
/// Around a service of your own it is a `tower` layer like any other; what is inside learns of nobody's token:
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
}

impl Protected {
    /// The server at this address, as clients write it: tokens have to be for it, byte for byte. The verifier says which
    /// are good.
    ///
    /// # Errors
    ///
    /// It is no `https` address. Plain `http` is for this machine only.
    pub fn new(resource: impl Into<Arc<str>>, verifier: impl Verify) -> Result<Self> {
        let resource = resource.into();
        let uri: Option<Uri> = resource.parse().ok().filter(|_| !resource.contains('#'));
        let uri = uri.filter(|uri| Reach::of(uri, &[]).check(&resource).is_ok()).ok_or_else(|| {
            Error::Misuse(format!(
                "`{resource}` is not where a server can be protected: give the `https` address that clients connect to"
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
            replay: Arc::default(),
        })
    }

    /// Tokens of another issuer too. The first verifier that [takes](Verify::takes) a token decides: put one that takes
    /// all of them last.
    #[must_use]
    pub fn or(mut self, verifier: impl Verify) -> Self {
        self.verifiers.push(Arc::new(verifier));
        self
    }

    /// What every request needs. What single tools need besides is said with them:
    /// [`requires`](pintle::server::ToolRoute::requires).
    #[must_use]
    pub fn scopes<T: Into<String>>(mut self, scopes: impl IntoIterator<Item = T>) -> Self {
        self.scopes = Scopes::of(scopes);
        self
    }

    /// What clients may ask for from the start, if they are told nothing better: the server's metadata has it. What every
    /// request needs if nothing is said; do not list all that there is.
    #[must_use]
    pub fn offers<T: Into<String>>(mut self, scopes: impl IntoIterator<Item = T>) -> Self {
        self.offered = Some(Scopes::of(scopes));
        self
    }

    /// Whoever was granted the first has the others too, and what those imply.
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

    /// What a person is told that they log in to.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Where to read how the server is used.
    #[must_use]
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.documentation = Some(url.into());
        self
    }

    /// Only tokens that are bound to a key of the client, so that a stolen one is worth nothing (DPoP, RFC 9449). Those
    /// that are bound are never accepted without their proof.
    #[must_use]
    pub fn dpop_only(mut self) -> Self {
        self.dpop_only = true;
        self
    }

    /// Where the server's metadata is, as a path.
    pub fn metadata_path(&self) -> String {
        format!("{WELL_KNOWN}{}", self.uri.path().trim_end_matches('/'))
    }

    /// The server's metadata, for frameworks that choose by path. The layer answers for it by itself where it gets to see
    /// such requests.
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

    /// Serves this server in the background: at the path of the protected address, for requests to its host and for pages
    /// that come from there; for a server on this machine, from any port of it.
    ///
    /// For anything else that can be chosen there are [`Server::http`] and [`Http::serve_with`], which takes several layers
    /// too. Pages of other origins, say:
    ///
    /// ```no_run
    /// use pintle::{Server, proto::http::Guard, server::http::Cors};
    /// use pintle_oauth::server::Protected;
    ///
    /// # async fn serve(server: Server, protected: Protected) -> pintle::Result<()> {
    /// let guard = Guard::hosts(["mcp.example.com"]).origins(["https://app.example.com"]);
    /// let http = server.http()?.at("/mcp").guard(guard.clone());
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    /// // The outer one first: a page has to be able to read why it is not let in.
    /// http.serve_with(&(Cors::new(guard), protected), listener)?.wait().await;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// What was registered is not as it should be, or the address cannot be listened on.
    pub async fn serve(&self, server: &Server, address: impl ToSocketAddrs) -> Result<HttpServing> {
        let host = self.uri.host().unwrap_or_default();
        let local = Reach::of(&self.uri, &[]).is_loopback();
        let guard = if local { Guard::loopback() } else { Guard::hosts([host]) };
        let http: Http = server.http()?.at(self.uri.path()).guard(guard.clone());
        // Outside, so that pages can read why they are not let in.
        let layers = (Cors::new(guard), self);
        Ok(http.serve_with(&layers, TcpListener::bind(address).await?)?)
    }

    /// Where clients are told to look.
    pub(super) fn metadata_url(&self) -> String {
        format!("{}{}", address::origin(&self.uri), self.metadata_path())
    }

    /// Whether the server's metadata is asked for: with its path, or at the root, where clients look next.
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
        ProtectedService::new(inner, Arc::new(Door::new(self.clone())))
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
