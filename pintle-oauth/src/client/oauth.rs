use std::{fmt, sync::Arc};

use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use pintle::{
    Error, Result,
    client::http::{Auth, Challenge, Outgoing},
};

use super::{
    authorization::{Authorization, TokensInUse},
    consent::Consent,
    dpop::{PROOF, Proven},
    grant::assertion::{Assertion, IdentityProvider},
    grant::device::DeviceCode,
    grant::flow::Grant,
    grant::settings::Settings,
    store::{Memory, Store},
};
use crate::shared::{
    clock::now,
    registered::Registered,
    scope::Scopes,
    web::{Network, Web},
};

/// Logs in to a server when it asks for it, and stays logged in.
///
/// One is for one server: the first that it is used with. No other gets to see a token of it.
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
/// A clone is the same one: connections that share it share its tokens, and one refresh is for all of them.
#[derive(Clone)]
#[must_use = "nothing happens until a transport has it: `Http::auth`"]
pub struct OAuth {
    settings: Settings,
    authorization: Arc<Authorization>,
}

impl OAuth {
    /// A user logs in and agrees. `name` is what they are told is asking.
    pub fn login(name: impl Into<String>, consent: impl Consent) -> Self {
        Self::by(Grant::Login { name: name.into(), consent: Box::new(consent) })
    }

    /// A user logs in on another device: for programs without a browser, and users who are elsewhere.
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

    /// The program itself is who is let in: `client_credentials`.
    ///
    /// A server that wants tokens of another authorization server than the client's fails the login, and nothing is sent
    /// there.
    pub fn machine(client: Registered) -> Self {
        Self::by(Grant::Machine).registered(client)
    }

    /// The user's identity provider agrees for them, without asking them: `enterprise-managed-authorization`. `client`
    /// is what the server's authorization server knows the program as: no other is shown what the provider says.
    pub fn enterprise(client: Registered, provider: IdentityProvider) -> Self {
        Self::by(Grant::Enterprise(provider)).registered(client)
    }

    /// The platform that the program runs on says who it is: workload identity federation. `issuer` is the authorization
    /// server that takes the platform's word: no other is shown it.
    pub fn workload(issuer: impl Into<String>, assertion: Assertion) -> Self {
        Self::by(Grant::Workload { issuer: issuer.into(), assertion })
    }

    fn by(grant: Grant) -> Self {
        let settings = Settings {
            grant: Arc::new(grant),
            registered: None,
            document: None,
            scopes: Scopes::default(),
            store: Arc::new(Memory::new()),
            web: Arc::new(Network::new()),
            dpop: false,
        };
        Self { settings, authorization: Arc::default() }
    }

    /// Uses a client that its authorization server knows already, and registers none.
    pub fn registered(mut self, client: Registered) -> Self {
        self.settings.registered = Some(client);
        self
    }

    /// The address of a document about the client, for authorization servers that read those. Others get the client
    /// registered.
    ///
    /// # Errors
    ///
    /// It is no `https` address with a path, or has a user, a `.` or `..` or a `#` in it.
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
                "`{url}` cannot be a client's id: give the `https` address of its metadata document, with a path"
            )));
        }
        self.settings.document = Some(url);
        Ok(self)
    }

    /// Asks for these scopes too, besides those that the server asks for.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.settings.scopes = Scopes::of(scopes);
        self
    }

    /// Keeps credentials there. In memory otherwise.
    pub fn store(mut self, store: impl Store) -> Self {
        self.settings.store = Arc::new(store);
        self
    }

    /// Sends the requests of a login with this.
    pub fn web(mut self, web: impl Web) -> Self {
        self.settings.web = Arc::new(web);
        self
    }

    /// Has tokens bound to a key of this client, where the authorization server can do that: a stolen one is worth
    /// nothing then.
    pub fn dpop(mut self) -> Self {
        self.settings.dpop = true;
        self
    }
}

impl Auth for OAuth {
    async fn authorize(&self, request: Outgoing<'_>) -> Result<HeaderMap> {
        let Some(mut held) = self.authorization.tokens_for(request.url) else { return Ok(HeaderMap::new()) };
        if held.tokens.is_stale(now()) {
            match self.authorization.renewed(&self.settings, held).await {
                Some(fresh) => held = fresh,
                // It will say so with a challenge, and that is where the user comes in.
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
        let proof = dpop.proof(&Proven { method: request.method.as_str(), url: request.url, with })?;
        headers.insert(PROOF, proof);
    }
    let value = HeaderValue::try_from(format!("{scheme} {}", held.tokens.access.reveal()));
    let mut value = value.map_err(|_| {
        Error::Decode("the authorization server gave a token that no header can carry".into())
    })?;
    value.set_sensitive(true);
    headers.insert(AUTHORIZATION, value);
    Ok(headers)
}
