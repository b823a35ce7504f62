use std::{fmt, sync::Arc, time::Duration};

use http::Uri;
use pintle::{Error, Result};

use super::token::{TokenRequest, TokenResponse};
use crate::shared::{
    form::Form,
    identity::Identity,
    metadata::ServerMetadata,
    reach::Reach,
    registered::Registered,
    scope::Scopes,
    secret::Secret,
    web::{AnyWeb, Guarded, Network, Web},
};

const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// Exchanges the token of a caller for one that another server accepts (RFC 8693), for gateways: a token is never forwarded.
///
/// ```no_run
/// use pintle_oauth::client::{Registered, Secret, TokenExchange};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pintle::Result<()> {
/// let gateway = Registered::new("https://login.example.com", "gateway").secret("s3cret");
/// let exchange = TokenExchange::new("https://login.example.com/token", gateway)
///     .resource("https://crm.example.com/mcp")
///     .scopes(["crm:read"]);
/// let token = exchange.exchange(&Secret::new("the token of the caller")).await?;
/// # drop(token); Ok(()) }
/// ```
#[derive(Clone)]
pub struct TokenExchange {
    token_endpoint: String,
    client: Registered,
    resource: Option<String>,
    audience: Option<String>,
    scopes: Scopes,
    web: Arc<dyn AnyWeb>,
}

/// A token that another one was exchanged for.
#[derive(Clone, Debug)]
pub struct ExchangedToken {
    secret: Secret,
    lifetime: Option<Duration>,
}

impl TokenExchange {
    /// Exchanges tokens at this endpoint, as a client of its authorization server.
    pub fn new(token_endpoint: impl Into<String>, client: Registered) -> Self {
        Self {
            token_endpoint: token_endpoint.into(),
            client,
            resource: None,
            audience: None,
            scopes: Scopes::default(),
            web: Arc::new(Network::new()),
        }
    }

    /// Sets the address of the server that the new token is for.
    #[must_use]
    pub fn resource(mut self, url: impl Into<String>) -> Self {
        self.resource = Some(url.into());
        self
    }

    /// Sets the name of the server that the new token is for, at authorization servers with names of their own.
    #[must_use]
    pub fn audience(mut self, name: impl Into<String>) -> Self {
        self.audience = Some(name.into());
        self
    }

    /// Sets the scopes of the new token.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = Scopes::of(scopes);
        self
    }

    /// Sends requests with this. The default is [`Network`].
    #[must_use]
    pub fn web(mut self, web: impl Web) -> Self {
        self.web = Arc::new(web);
        self
    }

    /// Exchanges the token of a caller.
    ///
    /// # Errors
    ///
    /// The authorization server cannot be reached, or refuses.
    pub async fn exchange(&self, caller: &Secret) -> Result<ExchangedToken> {
        let mut form = Form::new()
            .with("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange")
            .with("requested_token_type", ACCESS_TOKEN)
            .with("subject_token", caller.reveal())
            .with("subject_token_type", ACCESS_TOKEN);
        if let Some(resource) = &self.resource {
            form.push("resource", resource);
        }
        if let Some(audience) = &self.audience {
            form.push("audience", audience);
        }
        let scopes = self.scopes.to_string();
        if !scopes.is_empty() {
            form.push("scope", &scopes);
        }
        // Its address is configured by the program, so it may be in a private network.
        let endpoint: Uri = self.token_endpoint.parse().map_err(|_| {
            Error::Misuse(format!("`{}` is not the address of a token endpoint", self.token_endpoint))
        })?;
        let addresses = self.web.addresses(endpoint.host().unwrap_or_default()).await;
        let web = Guarded { web: &*self.web, reach: Reach::of(&endpoint, &addresses) };
        let client = Identity::registered(&self.client, &ServerMetadata::default());
        let request = TokenRequest {
            web,
            endpoint: &self.token_endpoint,
            issuer: &self.client.issuer,
            client: Some(&client),
            dpop: None,
            form,
        };
        let answer = request.send::<TokenResponse>("access_token").await;
        let answer = answer.map_err(|error| error.into_error(&self.token_endpoint))?;
        if !answer.token_type.eq_ignore_ascii_case("bearer") {
            return Err(Error::Decode(format!(
                "`{}` issued a token of the type `{}`, instead of a bearer token",
                self.token_endpoint, answer.token_type
            )));
        }
        Ok(ExchangedToken {
            secret: answer.access_token,
            lifetime: answer.expires_in.map(Duration::from_secs),
        })
    }
}

impl ExchangedToken {
    /// Returns the token.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Returns how long it is valid from now on, if the authorization server says it.
    pub fn lifetime(&self) -> Option<Duration> {
        self.lifetime
    }
}

impl fmt::Debug for TokenExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenExchange").field("token_endpoint", &self.token_endpoint).finish_non_exhaustive()
    }
}
