use std::{fmt, sync::Arc};

use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use pintle::{
    Client, Error, Result,
    client::http::{Auth, Challenge, Outgoing},
    types::JsonObject,
};

use super::{
    authorization::{Authorization, TokensInUse},
    consent::Consent,
    dpop::{PROOF, ProofRequest},
    grant::assertion::{Assertion, IdentityProvider},
    grant::device::DeviceCode,
    grant::flow::Grant,
    grant::revocation,
    grant::settings::Settings,
    store::{MemoryStore, Store, stored_login::StoredLogin},
};
use crate::shared::{
    clock::now,
    reach::Reach,
    registered::Registered,
    scope::Scopes,
    web::{Network, Web},
};

/// The extension of [`OAuth::machine`].
const CLIENT_CREDENTIALS: &str = "io.modelcontextprotocol/oauth-client-credentials";
/// The extension of [`OAuth::enterprise`].
const ENTERPRISE_MANAGED: &str = "io.modelcontextprotocol/enterprise-managed-authorization";
/// The extension of [`OAuth::workload`].
const WORKLOAD_IDENTITY: &str = "io.modelcontextprotocol/auth/wif";
/// The extension of [`OAuth::dpop`].
const DPOP: &str = "io.modelcontextprotocol/auth/dpop";

/// Logs in to a server when it requires authorization, and stays logged in.
///
/// An `OAuth` belongs to the first server that it is used with. Its tokens are never sent to another one.
///
/// ```no_run
/// use pintle::{Client, client::http::Http};
/// use pintle_oauth::client::{Loopback, OAuth};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let oauth = OAuth::login("My app", Loopback::browser());
/// let http = Http::new("https://example.com/mcp")?.auth(oauth);
/// let server = Client::new("my-app", "1.0.0").connect(http).await?;
/// for tool in server.tools().await? {
///     println!("{}", tool.name);
/// }
/// # Ok(()) }
/// ```
///
/// Clones share their tokens, and one refresh serves all of them.
#[derive(Clone)]
#[must_use = "an `OAuth` does nothing until it is given to a transport with `Http::auth`"]
pub struct OAuth {
    settings: Settings,
    authorization: Arc<Authorization>,
}

impl OAuth {
    /// Has a user log in and consent, in a browser. `name` is shown to them as the name of the application.
    pub fn login(name: impl Into<String>, consent: impl Consent) -> Self {
        Self::by(Grant::Login { name: name.into(), consent: Box::new(consent) })
    }

    /// Has a user log in on another device, for programs without a browser (RFC 8628).
    ///
    /// ```
    /// use pintle_oauth::client::{DeviceCode, OAuth};
    ///
    /// let oauth = OAuth::device("My app", |device: &DeviceCode| {
    ///     println!("Go to {} and type {}", device.url(), device.code());
    /// });
    /// ```
    pub fn device(name: impl Into<String>, show: impl Fn(&DeviceCode) + Send + Sync + 'static) -> Self {
        Self::by(Grant::Device { name: name.into(), show: Box::new(show) })
    }

    /// Authorizes the program itself, without a user: the `client_credentials` grant.
    ///
    /// If the server names another authorization server than the client's, the login fails and nothing is sent there.
    pub fn machine(client: Registered) -> Self {
        Self::by(Grant::Machine).registered(client)
    }

    /// Authorizes the user through their identity provider: `enterprise-managed-authorization`. `client` is the registration
    /// of the program at the server's authorization server; the provider's assertion is sent to no other.
    pub fn enterprise(client: Registered, provider: IdentityProvider) -> Self {
        Self::by(Grant::Enterprise(provider)).registered(client)
    }

    /// Authorizes the program by an assertion of its platform: workload identity federation. `issuer` is the authorization
    /// server that trusts the platform; the assertion is sent to no other.
    pub fn workload(issuer: impl Into<String>, assertion: Assertion) -> Self {
        Self::by(Grant::Workload { issuer: issuer.into(), assertion })
    }

    fn by(grant: Grant) -> Self {
        let settings = Settings {
            grant: Arc::new(grant),
            registered: None,
            document: None,
            scopes: Scopes::default(),
            store: Arc::new(MemoryStore::new()),
            web: Arc::new(Network::new()),
            dpop: false,
            reach: None,
        };
        Self { settings, authorization: Arc::default() }
    }

    /// Sends the requests of the login to these networks only. Without this, they are those that the name of the server resolves to when the
    /// login begins, which is not enough where somebody else chooses that name: it may lead to another address a moment later.
    ///
    /// ```
    /// # use pintle_oauth::client::{Loopback, OAuth};
    /// use pintle_oauth::client::Reach;
    ///
    /// let url = "https://mcp.example.com/mcp";
    /// let oauth = OAuth::login("My gateway", Loopback::browser()).reach(Reach::as_written(url));
    /// ```
    pub fn reach(mut self, reach: Reach) -> Self {
        self.settings.reach = Some(reach);
        self
    }

    /// Uses a client that is registered already.
    pub fn registered(mut self, client: Registered) -> Self {
        self.settings.registered = Some(client);
        self
    }

    /// Identifies the client by the address of its metadata document, at authorization servers that support that. At others
    /// the client is registered.
    ///
    /// # Errors
    ///
    /// Fails if `url` is not an `https` address with a path, or contains a user, a `.` or `..` segment or a fragment.
    pub fn document(mut self, url: impl Into<String>) -> Result<Self> {
        let url = url.into();
        let is_one = url.parse::<http::Uri>().is_ok_and(|uri| {
            uri.scheme_str() == Some("https")
                && uri.path().len() > 1
                && !uri.path().split('/').any(|part| matches!(part, "." | ".."))
                && !uri.authority().is_some_and(|authority| authority.as_str().contains('@'))
                && !url.contains('#')
        });
        if !is_one {
            return Err(Error::Misuse(format!(
                "`{url}` is not a valid client id; use the `https` address of the client's metadata document, with a path"
            )));
        }
        self.settings.document = Some(url);
        Ok(self)
    }

    /// Requests these scopes in addition to those that the server asks for.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.settings.scopes = Scopes::of(scopes);
        self
    }

    /// Stores credentials there. The default is [`MemoryStore`].
    pub fn store(mut self, store: impl Store) -> Self {
        self.settings.store = Arc::new(store);
        self
    }

    /// Sends the requests of a login with this. The default is [`Network`].
    pub fn web(mut self, web: impl Web) -> Self {
        self.settings.web = Arc::new(web);
        self
    }

    /// Binds tokens to a key of this client where the authorization server supports it (DPoP, RFC 9449), so that a stolen
    /// token cannot be used.
    pub fn dpop(mut self) -> Self {
        self.settings.dpop = true;
        self
    }

    /// Returns the names of the extensions of the protocol that this authorization is made of: that of its grant, and that of
    /// [`dpop`](Self::dpop). A login of a user is none.
    pub fn extensions(&self) -> Vec<&'static str> {
        let grant = match &*self.settings.grant {
            Grant::Machine => Some(CLIENT_CREDENTIALS),
            Grant::Enterprise(_) => Some(ENTERPRISE_MANAGED),
            Grant::Workload { .. } => Some(WORKLOAD_IDENTITY),
            Grant::Login { .. } | Grant::Device { .. } => None,
        };
        grant.into_iter().chain(self.settings.dpop.then_some(DPOP)).collect()
    }

    /// Returns a client that declares the [extensions](Self::extensions) of this authorization. Use it for the servers that are
    /// connected to with it, and for no others.
    ///
    /// ```no_run
    /// use pintle::{Client, client::http::Http};
    /// use pintle_oauth::client::{OAuth, Registered};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// let oauth = OAuth::machine(Registered::new("https://login.example.com", "bot").secret("s3cret"));
    /// let client = oauth.declare(Client::new("bot", "1.0.0"));
    /// let server = client.connect(Http::new("https://example.com/mcp")?.auth(oauth)).await?;
    /// # Ok(()) }
    /// ```
    pub fn declare(&self, client: Client) -> Client {
        self.extensions().into_iter().fold(client, |client, name| client.extension(name, JsonObject::new()))
    }

    /// Revokes the tokens of a stored login at its authorization server (RFC 7009): the refresh token, then the access token. They
    /// stay in the store.
    ///
    /// ```no_run
    /// use pintle_oauth::client::{FileStore, Loopback, OAuth};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pintle::Result<()> {
    /// let file = FileStore::at("credentials.json");
    /// let oauth = OAuth::login("My app", Loopback::browser()).store(file.clone());
    /// for login in file.logins().await? {
    ///     if let Err(error) = oauth.revoke(&login).await {
    ///         eprintln!("the tokens for {} were not revoked: {error}", login.resource);
    ///     }
    ///     file.forget(&login).await?;
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The authorization server cannot be reached, does not offer to revoke tokens, or refuses.
    pub async fn revoke(&self, login: &StoredLogin) -> Result<()> {
        revocation::revoke(&self.settings, login).await
    }
}

impl Auth for OAuth {
    async fn authorize(&self, request: Outgoing<'_>) -> Result<HeaderMap> {
        let Some(mut held) = self.authorization.tokens_for(request.url) else { return Ok(HeaderMap::new()) };
        if held.tokens.is_stale(now()) {
            match self.authorization.renewed(&self.settings, held).await {
                Some(fresh) => held = fresh,
                // The server answers with a challenge, which leads to a new login.
                None => return Ok(HeaderMap::new()),
            }
        }
        headers(&held, &request)
    }

    async fn challenged(&self, challenge: Challenge<'_>) -> Result<bool> {
        self.authorization.challenged(&self.settings, &challenge).await
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OAuth(…)")
    }
}

fn headers(held: &TokensInUse, request: &Outgoing<'_>) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    let mut scheme = "Bearer";
    if let Some(dpop) = &held.dpop {
        scheme = "DPoP";
        let with = Some((&held.tokens.access, request.body.as_ref()));
        let proof = dpop.proof(&ProofRequest { method: request.method.as_str(), url: request.url, with })?;
        headers.insert(PROOF, proof);
    }
    let value = HeaderValue::try_from(format!("{scheme} {}", held.tokens.access.reveal()));
    let mut value = value.map_err(|_| {
        Error::Decode(
            "the authorization server issued a token with characters that are not allowed in a header".into(),
        )
    })?;
    value.set_sensitive(true);
    headers.insert(AUTHORIZATION, value);
    Ok(headers)
}
