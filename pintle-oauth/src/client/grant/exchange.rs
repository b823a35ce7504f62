use std::{fmt, sync::Arc};

use pintle::Result;

use super::issued::{IssuedToken, TokenEndpoint};
use crate::shared::{form::Form, registered::Registered, scope::Scopes, secret::Secret, web::Web};

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
    endpoint: TokenEndpoint,
    resource: Option<String>,
    audience: Option<String>,
}

impl TokenExchange {
    /// Exchanges tokens at this endpoint, as a client of its authorization server.
    pub fn new(token_endpoint: impl Into<String>, client: Registered) -> Self {
        let endpoint = TokenEndpoint::new(token_endpoint.into(), client);
        Self { endpoint, resource: None, audience: None }
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
        self.endpoint.scopes = Scopes::of(scopes);
        self
    }

    /// Sends requests with this. The default is [`Network`](crate::client::Network).
    #[must_use]
    pub fn web(mut self, web: impl Web) -> Self {
        self.endpoint.web = Arc::new(web);
        self
    }

    /// Exchanges the token of a caller.
    ///
    /// # Errors
    ///
    /// The authorization server cannot be reached, or refuses.
    pub async fn exchange(&self, caller: &Secret) -> Result<IssuedToken> {
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
        self.endpoint.issue(form, Some(caller)).await
    }
}

impl fmt::Debug for TokenExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenExchange").field("token_endpoint", &self.endpoint.url).finish_non_exhaustive()
    }
}
